CREATE PROCEDURE DELIVERY(IN in_w_id INT, IN in_carrier INT, IN in_now DATETIME)
COMMENT 'loadprint'
BEGIN
    DECLARE district INT DEFAULT 1;
    DECLARE order_id, buyer INT;
    DECLARE total INT;
    DECLARE EXIT HANDLER FOR SQLSTATE '23000' ROLLBACK;

    START TRANSACTION;
    WHILE district <= 10 DO
        /* Without waiting orders they stay NULL and the district is unchanged. */
        SET order_id = NULL, buyer = NULL;
        SELECT no_o_id INTO order_id FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district
            LIMIT 1;
        DELETE FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district AND no_o_id = order_id;
        SELECT o_c_id INTO buyer FROM orders WHERE o_w_id = in_w_id AND o_d_id = district AND o_id = order_id;
        UPDATE orders SET o_carrier_id = in_carrier
            WHERE o_w_id = in_w_id AND o_d_id = district AND o_id = order_id;
        UPDATE order_line SET ol_delivery_d = in_now
            WHERE ol_w_id = in_w_id AND ol_d_id = district AND ol_o_id = order_id;
        SELECT SUM(ol_amount) INTO total FROM order_line
            WHERE ol_w_id = in_w_id AND ol_d_id = district AND ol_o_id = order_id;
        UPDATE customer SET c_balance = c_balance + total
            WHERE c_w_id = in_w_id AND c_d_id = district AND c_id = buyer;
        SET district = district + 1;
    END WHILE;
    COMMIT;
END

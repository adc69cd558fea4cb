CREATE PROCEDURE SLEV(IN in_w_id INT, IN in_d_id INT, IN in_threshold INT, OUT out_low INT)
COMMENT 'loadprint'
BEGIN
    DECLARE next_order INT;
    DECLARE EXIT HANDLER FOR SQLSTATE '23000' ROLLBACK;
    DECLARE EXIT HANDLER FOR NOT FOUND ROLLBACK;

    START TRANSACTION;
    SELECT d_next_o_id INTO next_order FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT COUNT(DISTINCT s_i_id) INTO out_low FROM order_line, stock
        WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id < next_order AND ol_o_id >= next_order - 20
        AND s_w_id = in_w_id AND s_i_id = ol_i_id AND s_quantity < in_threshold;
    COMMIT;
END

CREATE PROCEDURE OSTAT(
    IN in_w_id INT, IN in_d_id INT, INOUT io_c_id INT, IN in_by_name INT, INOUT io_last VARCHAR(16),
    OUT out_first VARCHAR(16), OUT out_middle CHAR(2), OUT out_balance DECIMAL(12,2),
    OUT out_o_id INT, OUT out_entry DATETIME, OUT out_carrier INT)
COMMENT 'loadprint'
BEGIN
    DECLARE names, middle INT;
    DECLARE fetched INT DEFAULT 0;
    DECLARE missing INT DEFAULT 0;
    DECLARE item, supplier, quantity INT;
    DECLARE amount INT;
    DECLARE delivered DATETIME;
    DECLARE items, suppliers, quantities, amounts, dates VARCHAR(500) DEFAULT '';
    DECLARE namesakes CURSOR FOR
        SELECT c_balance, c_first, c_middle, c_id FROM customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = io_last ORDER BY c_first;
    DECLARE order_lines CURSOR FOR
        SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = out_o_id;
    DECLARE EXIT HANDLER FOR SQLSTATE '23000' ROLLBACK;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET missing = 1;

    START TRANSACTION;
    IF in_by_name = 1 THEN
        SELECT COUNT(c_id) INTO names FROM customer
            WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = io_last;
        SET middle = (names + 1) DIV 2 + 1;
        OPEN namesakes;
        WHILE fetched < middle DO
            FETCH namesakes INTO out_balance, out_first, out_middle, io_c_id;
            SET fetched = fetched + 1;
        END WHILE;
        CLOSE namesakes;
    ELSE
        SELECT c_balance, c_first, c_middle, c_last INTO out_balance, out_first, out_middle, io_last FROM customer
            WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = io_c_id;
    END IF;
    SELECT o_id, o_carrier_id, o_entry_d INTO out_o_id, out_carrier, out_entry
        FROM (SELECT o_id, o_carrier_id, o_entry_d FROM orders
              WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = io_c_id ORDER BY o_id DESC) AS newest LIMIT 1;
    SET missing = 0;
    OPEN order_lines;
    REPEAT
        FETCH order_lines INTO item, supplier, quantity, amount, delivered;
        IF NOT missing THEN
            SET items = CONCAT(items, item, ',');
            SET suppliers = CONCAT(suppliers, supplier, ',');
            SET quantities = CONCAT(quantities, quantity, ',');
            SET amounts = CONCAT(amounts, amount, ',');
            SET dates = CONCAT(dates, COALESCE(delivered, ''), ',');
        END IF;
    UNTIL missing END REPEAT;
    CLOSE order_lines;
    COMMIT;
END

CREATE PROCEDURE NEWORD(
    IN in_w_id INT, IN in_warehouses INT, IN in_d_id INT, IN in_c_id INT, IN in_lines INT,
    OUT out_discount DECIMAL(4,4), OUT out_last VARCHAR(16), OUT out_credit VARCHAR(2),
    OUT out_d_tax DECIMAL(4,4), OUT out_w_tax DECIMAL(4,4),
    INOUT io_o_id INT, IN in_now DATETIME)
COMMENT 'loadprint'
BEGIN
    DECLARE number INT DEFAULT 1;
    DECLARE all_local INT DEFAULT 1;
    DECLARE order_id, supplier, item, quantity, stocked, unused, die INT;
    DECLARE price DECIMAL(5,2);
    DECLARE name VARCHAR(24);
    DECLARE about_item, about_stock VARCHAR(50);
    DECLARE amount DECIMAL(6,2);
    DECLARE d01, d02, d03, d04, d05, d06, d07, d08, d09, d10, about_line CHAR(24);
    /* A nonexistent item rolls the order back; a NULL number reports this to the client. */
    DECLARE EXIT HANDLER FOR SQLSTATE '23000' BEGIN ROLLBACK; SET io_o_id = NULL; END;
    DECLARE EXIT HANDLER FOR NOT FOUND BEGIN ROLLBACK; SET io_o_id = NULL; END;

    SELECT c_discount, c_last, c_credit, w_tax INTO out_discount, out_last, out_credit, out_w_tax
        FROM warehouse, customer WHERE w_id = in_w_id AND c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    START TRANSACTION;
    SELECT d_next_o_id, d_tax INTO io_o_id, out_d_tax FROM district
        WHERE d_w_id = in_w_id AND d_id = in_d_id FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SET order_id = io_o_id;
    SET unused = FLOOR(1 + RAND() * 99);
    WHILE number <= in_lines DO
        /* The same number of branches and assignments as in the procedure of HammerDB: they take a fifth of the server time. */
        IF unused = 1 AND number = in_lines THEN
            SET item = 100001;
        ELSE
            SET item = FLOOR(1 + RAND() * 100000);
        END IF;
        SET die = FLOOR(1 + RAND() * 100);
        SET supplier = in_w_id;
        IF die = 1 THEN
            SET all_local = 0;
            WHILE supplier = in_w_id AND in_warehouses <> 1 DO
                SET supplier = FLOOR(1 + RAND() * in_warehouses);
            END WHILE;
        END IF;
        SET quantity = FLOOR(1 + RAND() * 10);
        SELECT i_price, i_name, i_data INTO price, name, about_item FROM item WHERE i_id = item;
        SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05,
               s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10
            INTO stocked, about_stock, d01, d02, d03, d04, d05, d06, d07, d08, d09, d10
            FROM stock WHERE s_w_id = supplier AND s_i_id = item;
        IF stocked > quantity THEN
            SET stocked = stocked - quantity;
        ELSE
            SET stocked = stocked - quantity + 91;
        END IF;
        UPDATE stock SET s_quantity = stocked WHERE s_w_id = supplier AND s_i_id = item;
        SET amount = quantity * price * (1 + out_w_tax + out_d_tax) * (1 - out_discount);
        CASE in_d_id
            WHEN 1 THEN SET about_line = d01;
            WHEN 2 THEN SET about_line = d02;
            WHEN 3 THEN SET about_line = d03;
            WHEN 4 THEN SET about_line = d04;
            WHEN 5 THEN SET about_line = d05;
            WHEN 6 THEN SET about_line = d06;
            WHEN 7 THEN SET about_line = d07;
            WHEN 8 THEN SET about_line = d08;
            WHEN 9 THEN SET about_line = d09;
            WHEN 10 THEN SET about_line = d10;
        END CASE;
        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                                ol_amount, ol_dist_info)
            VALUES (order_id, in_d_id, in_w_id, number, item, supplier, quantity, amount, about_line);
        SET number = number + 1;
    END WHILE;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (order_id, in_d_id, in_w_id, in_c_id, in_now, in_lines, all_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (order_id, in_d_id, in_w_id);
    COMMIT;
END

CREATE PROCEDURE PAYMENT(
    IN in_w_id INT, IN in_d_id INT, IN in_c_w_id INT, IN in_c_d_id INT, INOUT io_c_id INT, IN in_by_name INT,
    IN in_amount DECIMAL(6,2), INOUT io_last VARCHAR(16),
    OUT out_w_street_1 VARCHAR(20), OUT out_w_street_2 VARCHAR(20), OUT out_w_city VARCHAR(20),
    OUT out_w_state CHAR(2), OUT out_w_zip CHAR(9),
    OUT out_d_street_1 VARCHAR(20), OUT out_d_street_2 VARCHAR(20), OUT out_d_city VARCHAR(20),
    OUT out_d_state CHAR(2), OUT out_d_zip CHAR(9),
    OUT out_first VARCHAR(16), OUT out_middle CHAR(2), OUT out_street_1 VARCHAR(20), OUT out_street_2 VARCHAR(20),
    OUT out_city VARCHAR(20), OUT out_state CHAR(2), OUT out_zip CHAR(9), OUT out_phone CHAR(16),
    OUT out_since DATETIME, INOUT io_credit CHAR(2), OUT out_credit_lim DECIMAL(12,2),
    OUT out_discount DECIMAL(4,4), INOUT io_balance DECIMAL(12,2), OUT out_data VARCHAR(500), IN in_now DATETIME)
COMMENT 'loadprint'
BEGIN
    DECLARE names, middle INT;
    DECLARE fetched INT DEFAULT 0;
    DECLARE missing INT DEFAULT 0;
    DECLARE w_called, d_called VARCHAR(10);
    DECLARE about VARCHAR(500);
    DECLARE places VARCHAR(30);
    DECLARE namesakes CURSOR FOR
        SELECT c_first, c_middle, c_id, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit,
               c_credit_lim, c_discount, c_balance, c_since
        FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = io_last ORDER BY c_first;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET missing = 1;
    DECLARE EXIT HANDLER FOR SQLSTATE '23000' ROLLBACK;

    START TRANSACTION;
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w_id;
    SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name
        INTO out_w_street_1, out_w_street_2, out_w_city, out_w_state, out_w_zip, w_called
        FROM warehouse WHERE w_id = in_w_id;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name
        INTO out_d_street_1, out_d_street_2, out_d_city, out_d_state, out_d_zip, d_called
        FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    IF in_by_name = 1 THEN
        SELECT COUNT(c_id) INTO names FROM customer
            WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = io_last;
        SET middle = (names + 1) DIV 2 + 1;
        OPEN namesakes;
        /* After the last row its values remain. */
        WHILE fetched < middle DO
            FETCH namesakes INTO out_first, out_middle, io_c_id, out_street_1, out_street_2, out_city, out_state,
                out_zip, out_phone, io_credit, out_credit_lim, out_discount, io_balance, out_since;
            SET fetched = fetched + 1;
        END WHILE;
        CLOSE namesakes;
    ELSE
        SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit,
               c_credit_lim, c_discount, c_balance, c_since
            INTO out_first, out_middle, io_last, out_street_1, out_street_2, out_city, out_state, out_zip, out_phone,
                 io_credit, out_credit_lim, out_discount, io_balance, out_since
            FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = io_c_id;
    END IF;
    SET io_balance = io_balance + in_amount;
    SET places = CONCAT(w_called, ' ', d_called);
    IF io_credit = 'BC' THEN
        SELECT c_data INTO out_data FROM customer
            WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = io_c_id;
        SET about = CONCAT(CONCAT_WS(' ', io_c_id, in_c_d_id, in_c_w_id, in_d_id, in_w_id, FORMAT(in_amount, 2)), in_now, places);
        SET about = SUBSTR(CONCAT(about, out_data), 1, 500 - LENGTH(about));
        UPDATE customer SET c_balance = io_balance, c_data = about
            WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = io_c_id;
    ELSE
        UPDATE customer SET c_balance = io_balance
            WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = io_c_id;
    END IF;
    INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (in_c_d_id, in_c_w_id, io_c_id, in_d_id, in_w_id, in_now, in_amount, places);
    COMMIT;
END

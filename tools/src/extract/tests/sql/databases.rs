//! The other databases, and SQL of none.

use super::check;
use crate::extract::Dialect::{BigQuery, Generic, MySql, Snowflake, Sqlite};

#[test]
fn mysql() {
    check(
        MySql,
        &[
            (
                "SELECT `Name` FROM `Shop`.`Users`",
                "shop.users users",
                "users.name",
                "READ",
            ),
            ("SELECT \"ssn\" FROM users", "users", "", "READ"),
            ("SELECT 1 /*!50000 , ssn FROM users */", "?", "?", "?"),
            ("SELECT 1 /*M! , ssn FROM users */", "?", "?", "?"),
            ("SELECT 1 --2, ssn\nFROM users", "users", "users.ssn", "READ"),
            ("SELECT 1 # , ssn\nFROM users", "users", "", "READ"),
            ("SELECT 'a\\', ssn FROM users -- ' FROM t", "t", "", "READ"),
            ("SELECT LOAD_FILE('/etc/passwd')", "?", "?", "READ EXECUTION"),
            ("SELECT SLEEP(10)", "?", "?", "READ EXECUTION"),
            ("SELECT name FROM users INTO OUTFILE '/tmp/x'", "?", "?", "?"),
            ("SELECT TIMESTAMPDIFF(DAY, a, b) FROM t", "t", "t.a t.b", "READ"),
            (
                "REPLACE INTO users (id) VALUES (1)",
                "users",
                "users.id",
                "EXTERNAL_WRITE DELETE",
            ),
            (
                "INSERT INTO users SET name = 'x'",
                "users",
                "users.name",
                "EXTERNAL_WRITE",
            ),
            (
                "INSERT INTO users (id) VALUES (1) ON DUPLICATE KEY UPDATE ssn = 1",
                "users",
                "users.id users.ssn",
                "EXTERNAL_WRITE",
            ),
            (
                "UPDATE users u JOIN orders o ON o.u = u.id SET u.name = o.x",
                "orders users",
                "orders.u orders.x users.id users.name",
                "EXTERNAL_WRITE",
            ),
            (
                "DELETE u FROM users u JOIN orders o ON o.u = u.id",
                "orders users",
                "orders.* orders.u users.* users.id",
                "DELETE",
            ),
            ("SELECT @x := ssn FROM users", "?", "?", "READ EXECUTION"),
            (
                "SELECT /*+ SET_VAR(sql_mode='ANSI_QUOTES') */ \"ssn\" FROM users",
                "?",
                "?",
                "?",
            ),
            ("SELECT id FROM t1 $$, ssn $$ FROM t2", "?", "?", "?"),
            ("SHOW TABLES", "?", "?", "READ"),
            ("DESCRIBE users", "users", "users.*", "READ"),
            (
                "SELECT MATCH (title) AGAINST ('x') FROM books",
                "books",
                "books.title",
                "READ",
            ),
            ("LOAD DATA INFILE 'x' INTO TABLE users", "?", "?", "?"),
            ("DO SLEEP(1)", "?", "?", "?"),
            ("SELECT 1.e, ssn FROM users", "?", "?", "?"),
        ],
    );
}

#[test]
fn sqlite() {
    check(
        Sqlite,
        &[
            (
                "SELECT [Name], \"ssn\" FROM [Users]",
                "users",
                "users.name users.ssn",
                "READ",
            ),
            ("SELECT ssn FROM 'users'", "users", "users.ssn", "READ"),
            (
                "SELECT sql FROM sqlite_master",
                "sqlite_master",
                "sqlite_master.sql",
                "READ",
            ),
            ("SELECT load_extension('x')", "?", "?", "READ EXECUTION"),
            ("SELECT writefile('x', 'y')", "?", "?", "READ EXECUTION"),
            ("SELECT * FROM fsdir WHERE path = '/'", "?", "?", "READ EXECUTION"),
            ("ATTACH DATABASE 'x.db' AS y", "?", "?", "EXECUTION"),
            ("PRAGMA table_info('users')", "?", "?", "READ"),
            ("PRAGMA user_version", "?", "?", "READ"),
            ("PRAGMA writable_schema = 1", "?", "?", "EXECUTION"),
            ("PRAGMA writable_schema(1)", "?", "?", "EXECUTION"),
            (
                "INSERT OR REPLACE INTO users (id) VALUES (1)",
                "users",
                "users.id",
                "EXTERNAL_WRITE DELETE",
            ),
            (
                "EXPLAIN QUERY PLAN SELECT name FROM users",
                "users",
                "users.name",
                "READ",
            ),
            ("VACUUM INTO 'x'", "?", "?", "?"),
            (
                "SELECT temp.users.ssn FROM temp.users",
                "temp.users",
                "users.ssn",
                "READ",
            ),
            (
                "SELECT value FROM users, json_each(users.data)",
                "users",
                "users.data users.value",
                "READ",
            ),
        ],
    );
}

#[test]
fn bigquery() {
    check(
        BigQuery,
        &[
            (
                "SELECT Name FROM `proj.shop.Users`",
                "Users proj.shop.Users shop.Users",
                "Users.name",
                "READ",
            ),
            (
                "SELECT u.address.street FROM users AS u",
                "users",
                "users.address",
                "READ",
            ),
            (
                "SELECT a FROM users AS u, u.addresses AS a",
                "addresses u.addresses users",
                "addresses.* addresses.a users.a users.addresses",
                "READ",
            ),
            (
                "SELECT a FROM users AS u, UNNEST(u.addresses) AS a",
                "users",
                "users.a users.addresses",
                "READ",
            ),
            ("SELECT * EXCEPT (ssn) FROM users", "users", "users.*", "READ"),
            ("SELECT x FROM `shop.events_*`", "?", "?", "READ EXECUTION"),
            (
                "SELECT * FROM EXTERNAL_QUERY('c', 'SELECT 1')",
                "?",
                "?",
                "READ EXECUTION",
            ),
            ("#legacySQL\nSELECT ssn FROM users", "?", "?", "?"),
            (
                "SELECT DATE_TRUNC(created, MONTH) FROM users",
                "users",
                "users.created",
                "READ",
            ),
            ("SELECT r'a\\' , ssn FROM users", "?", "?", "?"),
            ("EXECUTE IMMEDIATE 'SELECT 1'", "?", "?", "EXECUTION"),
            (
                "SELECT SAFE.SUBSTR(name, 1) FROM users",
                "users",
                "users.name",
                "READ",
            ),
            ("FROM users |> SELECT name", "users", "users.* users.name", "READ"),
        ],
    );
}

#[test]
fn snowflake() {
    check(
        Snowflake,
        &[
            (
                "SELECT \"NAME\", \"ssn\" FROM USERS",
                "users",
                "users.\"ssn\" users.name",
                "READ",
            ),
            (
                "SELECT name FROM \"users\"",
                "\"users\"",
                "\"users\".name",
                "READ",
            ),
            (
                "SELECT ssn FROM db..users",
                "db..users users",
                "users.ssn",
                "READ",
            ),
            ("SELECT $1 FROM users", "users", "users.*", "READ"),
            ("SELECT $1 FROM @stage/file.csv", "?", "?", "READ EXECUTION"),
            ("SELECT ssn FROM IDENTIFIER('users')", "?", "?", "READ EXECUTION"),
            (
                "SELECT f.value FROM users u, LATERAL FLATTEN(input => u.data) f",
                "users",
                "users.data",
                "READ",
            ),
            ("SELECT src:a.b::string FROM users", "users", "users.src", "READ"),
            ("SELECT DATEDIFF(day, a, b) FROM t", "t", "t.a t.b", "READ"),
            (
                "SELECT * FROM TABLE(RESULT_SCAN(LAST_QUERY_ID()))",
                "?",
                "?",
                "READ EXECUTION",
            ),
            ("COPY INTO @stage FROM users", "?", "?", "EXECUTION"),
            ("SELECT 1 // , ssn\nFROM users", "users", "", "READ"),
            ("SELECT SYSTEM$WAIT(1)", "?", "?", "READ EXECUTION"),
        ],
    );
}

#[test]
fn generic() {
    check(
        Generic,
        &[
            ("SELECT \"Name\" FROM Users", "users", "users.name", "READ"),
            ("SELECT 'a\\'", "?", "?", "?"),
            ("SELECT 1 --2", "?", "?", "?"),
            ("SELECT 1 # 2", "?", "?", "?"),
            ("SELECT $$x$$", "?", "?", "?"),
            ("SELECT 1 /*! , ssn FROM users */", "?", "?", "?"),
            ("EXEC xp_cmdshell 'dir'", "?", "?", "EXECUTION"),
            ("SELECT * FROM 'file.csv'", "?", "?", "READ EXECUTION"),
            ("SELECT * FROM url('x')", "?", "?", "READ EXECUTION"),
        ],
    );
}

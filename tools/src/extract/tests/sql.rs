//! Tables, columns and risks, dialect by dialect.

use super::{read, risks, shown};
use crate::extract::Dialect;
use crate::extract::Dialect::{BigQuery, Generic, MySql, Postgres, Snowflake, Sqlite};

/// One row: the text, its tables (the default schema left out), columns, and risks.
type Row = (&'static str, &'static str, &'static str, &'static str);

fn check(dialect: Dialect, rows: &[Row]) {
    let mut wrong = Vec::new();
    for (text, tables, columns, expected) in rows {
        let extraction = read(dialect, text);
        let found = shown(&extraction.resources)
            .replace("table://public.", "")
            .replace("table://main.", "")
            .replace("table://", "");
        let columns_found = shown(&extraction.columns);
        let risks_found = risks(&extraction);
        if (found.as_str(), columns_found.as_str(), risks_found.as_str()) != (*tables, *columns, *expected) {
            wrong.push(format!(
                "{dialect:?}: {text}\n  found {found:?} {columns_found:?} {risks_found:?}\n  not   {tables:?} {columns:?} {expected:?}\n  {:?}",
                extraction.reasons
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_every_database_reads_alike() {
    let rows: &[Row] = &[
        ("SELECT name FROM users", "users", "users.name", "READ"),
        (
            "select u.name, u.ssn from users u where u.id = 1;",
            "users",
            "users.id users.name users.ssn",
            "READ",
        ),
        ("SELECT * FROM users", "users", "users.*", "READ"),
        (
            "SELECT u.* FROM users u JOIN orders o ON o.user_id = u.id",
            "orders users",
            "orders.user_id users.* users.id",
            "READ",
        ),
        ("SELECT count(*) FROM users", "users", "", "READ"),
        (
            "SELECT name FROM users, orders",
            "orders users",
            "orders.name users.name",
            "READ",
        ),
        (
            "SELECT users.name FROM users JOIN orders USING (id)",
            "orders users",
            "orders.id users.id users.name",
            "READ",
        ),
        (
            "SELECT users.name FROM users NATURAL JOIN orders",
            "orders users",
            "orders.* users.* users.name",
            "READ",
        ),
        (
            "WITH x AS (SELECT ssn AS name FROM users) SELECT name FROM x",
            "users",
            "users.ssn",
            "READ",
        ),
        (
            "WITH users AS (SELECT 1 AS ssn) SELECT ssn FROM users",
            "",
            "",
            "READ",
        ),
        (
            "WITH a AS (SELECT id FROM t1), b AS (SELECT id FROM a) SELECT * FROM b",
            "t1",
            "t1.id",
            "READ",
        ),
        (
            "SELECT d.n FROM (SELECT name AS n FROM users) d",
            "users",
            "users.name",
            "READ",
        ),
        (
            "SELECT name FROM users UNION SELECT title FROM books",
            "books users",
            "books.title users.name",
            "READ",
        ),
        (
            "SELECT name FROM users WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = users.id)",
            "orders users",
            "orders.user_id users.id users.name",
            "READ",
        ),
        (
            "SELECT name FROM users WHERE id IN (SELECT user_id FROM orders)",
            "orders users",
            "orders.user_id users.id users.name users.user_id",
            "READ",
        ),
        (
            "SELECT name AS n FROM users ORDER BY n",
            "users",
            "users.name",
            "READ",
        ),
        (
            "SELECT name AS n FROM users ORDER BY ssn",
            "users",
            "users.name users.ssn",
            "READ",
        ),
        (
            "SELECT a.x, b.y FROM t a LEFT JOIN t b ON a.id = b.parent",
            "t",
            "t.id t.parent t.x t.y",
            "READ",
        ),
        (
            "SELECT CASE WHEN ssn > 1 THEN 1 ELSE 2 END FROM users",
            "users",
            "users.ssn",
            "READ",
        ),
        (
            "SELECT upper(name) FROM users GROUP BY name HAVING max(age) > 3",
            "users",
            "users.age users.name",
            "READ",
        ),
        (
            "SELECT sum(x) OVER (PARTITION BY y ORDER BY z) FROM t",
            "t",
            "t.x t.y t.z",
            "READ",
        ),
        (
            "SELECT name FROM users; SELECT title FROM books",
            "books users",
            "books.title users.name",
            "READ",
        ),
        (
            "INSERT INTO users (name) VALUES ('x')",
            "users",
            "users.name",
            "EXTERNAL_WRITE",
        ),
        (
            "INSERT INTO users VALUES (1)",
            "users",
            "users.*",
            "EXTERNAL_WRITE",
        ),
        (
            "INSERT INTO log (msg) SELECT ssn FROM users",
            "log users",
            "log.msg users.ssn",
            "READ EXTERNAL_WRITE",
        ),
        (
            "UPDATE users SET name = 'x' WHERE id = 3",
            "users",
            "users.id users.name",
            "EXTERNAL_WRITE",
        ),
        (
            "DELETE FROM users WHERE id = 3",
            "users",
            "users.* users.id",
            "DELETE",
        ),
        ("DROP TABLE users", "users", "users.*", "DELETE"),
        ("SELECT 1; DROP TABLE users", "users", "users.*", "READ DELETE"),
        ("CREATE TABLE t (a int)", "t", "t.*", "EXTERNAL_WRITE"),
        ("GRANT SELECT ON users TO bob", "?", "?", "PERMISSION_CHANGE"),
        ("SELECT my_function(name) FROM users", "?", "?", "READ EXECUTION"),
        (
            "SELECT s.my_function(name) FROM users",
            "?",
            "?",
            "READ EXECUTION",
        ),
        ("CALL wipe()", "?", "?", "EXECUTION"),
        ("SELEC name", "?", "?", "?"),
        ("", "?", "?", "?"),
        ("-- only a comment", "?", "?", "?"),
    ];
    for dialect in Dialect::ALL {
        check(dialect, rows);
    }
}

#[test]
fn case_matters_where_it_does_in_the_database() {
    for dialect in Dialect::ALL {
        let table = if dialect == BigQuery { "USERS" } else { "users" };
        let extraction = read(dialect, "SELECT NAME FROM USERS");
        assert_eq!(shown(&extraction.columns), format!("{table}.name"), "{dialect:?}");
    }
}

#[test]
fn postgres() {
    check(
        Postgres,
        &[
            (
                r#"SELECT "Name", "u"."SSN" FROM "Users" AS "u""#,
                "Users",
                "Users.Name Users.SSN",
                "READ",
            ),
            (
                "SELECT ssn FROM private.users",
                "private.users",
                "users.ssn",
                "READ",
            ),
            (
                "SELECT public.users.ssn FROM public.users",
                "users",
                "users.ssn",
                "READ",
            ),
            (
                "SELECT ssn FROM app.public.users",
                "app.public.users users",
                "users.ssn",
                "READ",
            ),
            (
                "SELECT usename FROM pg_shadow",
                "pg_catalog.pg_shadow pg_shadow",
                "pg_shadow.usename",
                "READ",
            ),
            ("SELECT u FROM users u", "users", "users.* users.u", "READ"),
            (
                "SELECT row_to_json(users) FROM users",
                "users",
                "users.* users.users",
                "READ",
            ),
            (
                "SELECT (u).ssn FROM users u",
                "users",
                "users.* users.ssn users.u",
                "READ",
            ),
            (
                "SELECT b FROM users AS u(a, b)",
                "users",
                "users.* users.b",
                "READ",
            ),
            ("TABLE users", "?", "?", "?"),
            (
                "SELECT a FROM t UNION TABLE users",
                "t users",
                "t.a users.*",
                "READ",
            ),
            (
                "SELECT name::text, data->>'ssn' FROM users",
                "users",
                "users.data users.name",
                "READ",
            ),
            (
                "SELECT DISTINCT ON (ssn) name FROM users",
                "users",
                "users.name users.ssn",
                "READ",
            ),
            (
                "SELECT x.name FROM users u, LATERAL (SELECT u.name) x",
                "users",
                "users.name",
                "READ",
            ),
            (
                "WITH RECURSIVE t(n) AS (SELECT id FROM nodes UNION ALL SELECT nodes.id FROM nodes JOIN t ON nodes.parent = t.n) SELECT n FROM t",
                "nodes",
                "nodes.id nodes.parent",
                "READ",
            ),
            (
                "WITH d AS (DELETE FROM users RETURNING ssn) SELECT * FROM d",
                "users",
                "users.* users.ssn",
                "READ DELETE",
            ),
            (
                "WITH users AS (SELECT 1) INSERT INTO users (name) VALUES (1)",
                "users",
                "users.name",
                "READ EXTERNAL_WRITE",
            ),
            (
                "INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING ssn",
                "users",
                "users.id users.name users.ssn",
                "READ EXTERNAL_WRITE",
            ),
            (
                "INSERT INTO users (id) VALUES (1) RETURNING *",
                "users",
                "users.* users.id",
                "READ EXTERNAL_WRITE",
            ),
            (
                "UPDATE users u SET name = o.label FROM orders o WHERE o.id = u.id",
                "orders users",
                "orders.id orders.label users.id users.name",
                "EXTERNAL_WRITE",
            ),
            (
                "DELETE FROM users USING orders o WHERE o.user_id = users.id",
                "orders users",
                "orders.* orders.user_id users.* users.id",
                "DELETE",
            ),
            (
                "MERGE INTO users u USING staged s ON u.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
                "staged users",
                "staged.id staged.name users.id users.name",
                "EXTERNAL_WRITE",
            ),
            (
                "MERGE INTO users u USING staged s ON u.id = s.id WHEN MATCHED THEN DELETE",
                "staged users",
                "staged.id users.* users.id",
                "EXTERNAL_WRITE DELETE",
            ),
            ("TRUNCATE users", "users", "users.*", "DELETE"),
            (
                "SELECT name FROM users FOR UPDATE",
                "users",
                "users.name",
                "READ EXTERNAL_WRITE",
            ),
            ("EXPLAIN SELECT name FROM users", "users", "users.name", "READ"),
            ("EXPLAIN DELETE FROM users", "users", "users.*", "READ"),
            (
                "EXPLAIN ANALYZE DELETE FROM users",
                "users",
                "users.*",
                "READ DELETE",
            ),
            (
                "EXPLAIN (ANALYZE, BUFFERS) DELETE FROM users",
                "users",
                "users.*",
                "READ DELETE",
            ),
            (
                "SELECT * INTO copy FROM users",
                "?",
                "?",
                "READ EXECUTION EXTERNAL_WRITE",
            ),
            (
                "COPY users TO '/tmp/x'",
                "users",
                "users.*",
                "EXECUTION EXTERNAL_WRITE",
            ),
            (
                "COPY (SELECT ssn FROM users) TO PROGRAM 'sh'",
                "users",
                "users.ssn",
                "READ EXECUTION EXTERNAL_WRITE",
            ),
            ("SELECT \"LOWER\"(name) FROM users", "?", "?", "READ EXECUTION"),
            (
                "SELECT name FROM users ORDER BY name USING >",
                "?",
                "?",
                "READ EXECUTION",
            ),
            (
                "WITH t AS (UPDATE users SET a = d.b FROM (SELECT b FROM x) d RETURNING id) SELECT id FROM t",
                "users x",
                "users.a users.id x.b",
                "READ EXTERNAL_WRITE",
            ),
            ("SELECT pg_read_file('/etc/passwd')", "?", "?", "READ EXECUTION"),
            ("SELECT lo_import('/etc/passwd')", "?", "?", "READ EXECUTION"),
            (
                "SELECT * FROM dblink('host=x', 'SELECT 1') AS t(a int)",
                "?",
                "?",
                "READ EXECUTION",
            ),
            (
                "SELECT query_to_xml('select * from users', true, true, '')",
                "?",
                "?",
                "READ EXECUTION",
            ),
            ("SELECT setval('s', 1)", "?", "?", "READ EXECUTION"),
            ("SELECT 'x'::mytype FROM users", "?", "?", "READ EXECUTION"),
            ("SELECT a OPERATOR(my.+) b FROM t", "?", "?", "READ EXECUTION"),
            (
                "SET search_path = private; SELECT ssn FROM users",
                "?",
                "?",
                "READ EXECUTION",
            ),
            ("SET ROLE admin", "?", "?", "PERMISSION_CHANGE"),
            ("CREATE EXTENSION dblink", "?", "?", "EXECUTION"),
            ("DO $$ BEGIN DELETE FROM users; END $$", "?", "?", "?"),
            ("PREPARE p AS SELECT 1; EXECUTE p", "?", "?", "READ EXECUTION"),
            ("BEGIN; COMMIT; SELECT 1", "?", "?", "READ EXECUTION"),
            ("SELECT $$it's; DROP TABLE x$$ FROM users", "users", "", "READ"),
            ("SELECT U&\"\\0073sn\" FROM users", "?", "?", "?"),
            ("SELECT 'a\\' , ssn FROM users --'", "users", "users.ssn", "READ"),
            ("SELECT E'a\\' , ssn' FROM users --'", "users", "", "READ"),
            (
                "SELECT generate_series FROM generate_series(1, 3)",
                "",
                "",
                "READ",
            ),
            (
                "SELECT e.value FROM users u, jsonb_each(u.data) e",
                "users",
                "users.data",
                "READ",
            ),
        ],
    );
}

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

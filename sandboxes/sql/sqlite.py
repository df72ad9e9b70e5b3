"""SQLite for `frame.py`: a database is a file.

Python's sqlite3 and not the sqlite3 shell: it has the authorizer, tells INTEGER, REAL, TEXT and BLOB apart, and accepts
double-quoted string literals as the shell does.
"""
import sqlite3

STEP = 100  # virtual machine instructions between two looks of the progress handler
READ_PRAGMAS = {
    "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
}
FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_rename_table"}
READING = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_PRAGMA,
}
# ATTACH also stands for VACUUM and VACUUM INTO, which attach their target.
NEVER = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE}


def without_comments(sql):
    """The text from its first word on. Strings need no care: none can stand before the first word."""
    at = 0
    while True:
        rest = sql[at:]
        blank = re.match(r"[\s;(]+", rest)
        if blank:
            at += blank.end()
        elif rest.startswith("--"):
            end = rest.find("\n")
            if end < 0:
                return ""
            at += end + 1
        elif rest.startswith("/*"):
            end = rest.find("*/", 2)
            if end < 0:
                return ""
            at += end + 2
        else:
            return rest


def statements(sql):
    """Cuts a script at the semicolons that end a statement; those in strings, comments and triggers do not."""
    found, start, at = [], 0, 0
    while True:
        semicolon = sql.find(";", at)
        if semicolon < 0:
            break
        at = semicolon + 1
        if sqlite3.complete_statement(sql[start:at]):
            found.append(sql[start:at])
            start = at
    found.append(sql[start:])
    return [one for one in found if without_comments(one).strip() != ""]


class Session:
    """A connection with its guard, the number of instructions it used, and what the guard refused."""

    def __init__(self, path, mode):
        self.mode = mode
        self.steps = 0
        self.refused = None
        flags = "mode=ro&immutable=1" if mode == "read" else "mode=rw"
        self.db = sqlite3.connect(f"file:{path}?{flags}", uri=True, isolation_level=None)
        self.db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self.db.execute("PRAGMA temp_store = MEMORY")
        if mode == "write":
            self.db.execute("PRAGMA synchronous = OFF")
            self.db.execute("PRAGMA foreign_keys = ON")
        self.db.set_progress_handler(self.tick, STEP)
        self.db.set_authorizer(self.allow)

    def tick(self):
        self.steps += 1
        return 0

    def allow(self, action, first, second, _database, _trigger):
        if action in NEVER:
            return self.deny("ATTACH, DETACH, VACUUM and virtual tables are not allowed")
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FORBIDDEN_FUNCTIONS:
            return self.deny(f"the function {second} is not allowed")
        if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in READ_PRAGMAS:
            return self.deny(f"PRAGMA {first} is not allowed")
        if self.mode == "read" and action not in READING:
            return self.deny("the database is read-only: one SELECT, WITH, VALUES or EXPLAIN")
        return sqlite3.SQLITE_OK

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        # By hand: its own handlers hold the connection, and the collector is off.
        self.db.close()
        if isinstance(error, sqlite3.Error) and self.refused:
            raise Refused(self.refused) from error

    def deny(self, why):
        self.refused = self.refused or why
        return sqlite3.SQLITE_DENY

    def query(self, sql, max_rows, max_bytes):
        """Rows of one statement, at most so many; the last tells whether there were more."""
        cursor = self.db.execute(sql)
        columns = [one[0] for one in cursor.description or []]
        shown = Shown(max_rows, max_bytes)
        for row in cursor:
            if not shown.takes():
                break
            shown.add(row)
        cursor.close()
        return columns, shown.rows, shown.more

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()


def op_query(request):
    """One reading statement."""
    with Session(request["db"], "read") as session:
        columns, rows, more = session.query(request["sql"], request["maxRows"], request["maxBytes"])
        if not columns:
            raise sqlite3.OperationalError("there is no statement")
        return {"columns": columns, "rows": rows, "more": more, "steps": session.steps}


def timed(request):
    session = Session(request["db"], "read")
    # Counting its instructions is no work of the statement.
    session.db.set_progress_handler(None, 0)

    def run():
        for _ in session.db.execute(request["sql"]):
            pass
    return run


def op_script(request):
    """A script of any statements on a copy that nobody else sees; `state` asks for what the database holds then."""
    path = os.path.join(request["scratch"], "copy.sqlite")
    shutil.copyfile(request["db"], path)
    os.chmod(path, 0o600)
    with Session(path, "write") as session:
        columns, rows, more, before = [], [], False, session.db.total_changes
        for one in statements(request["sql"]):
            shown = session.query(one, request["maxRows"], request["maxBytes"])
            if shown[0]:
                columns, rows, more = shown
        if session.db.in_transaction:
            session.db.rollback()
        changes = session.db.total_changes - before
        result = {"columns": columns, "rows": rows, "more": more, "changes": changes, "steps": session.steps}
    if not request.get("state"):
        return result
    # Over another connection: temporary tables, views and triggers are the script's own and nothing that the database holds.
    with Session(path, "write") as session:
        result["probes"] = [probe(session, sql) for sql in request.get("probes", [])]
        result["state"] = state_of(session, request["maxRows"], request["maxBytes"])
    return result


def probe(session, sql):
    """What a statement does on the changed database: an error's class only, because texts name the author's objects."""
    try:
        _columns, rows, _more = session.query(sql, 1000, 1 << 20)
        return {"ok": True, "rows": rows}
    except sqlite3.Error as error:
        return {"ok": False, "rows": [], "error": type(error).__name__}


def state_of(session, max_rows, max_bytes):
    """Tables with columns and rows, views with rows, indexes by what they cover, triggers by their text; all in the order of their names."""
    tables, indexes, size = [], [], 0
    named = session.rows(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' ORDER BY name")
    for name, kind in named:
        columns = [
            {"name": column[1], "type": column[2].upper(), "notNull": bool(column[3]), "key": column[5]}
            for column in shown_columns(session, name)
        ]
        _names, rows, more = session.query(f"SELECT * FROM {quoted(name)}", max_rows, max_bytes)
        size += sum(len(cell) if cell is not None else 4 for row in rows for cell in row)
        if more or size > max_bytes:
            raise TooLarge(f"the {kind} {name} is larger than can be compared")
        keys = session.rows(f"PRAGMA foreign_key_list({quoted(name)})") if kind == "table" else []
        foreign = sorted([key[3], key[2], key[4] or ""] for key in keys)
        tables.append({"name": name, "kind": kind, "columns": columns, "rows": rows, "foreignKeys": foreign})
        if kind != "table":
            continue
        for index in session.rows(f"PRAGMA index_list({quoted(name)})"):
            if index[3] != "c":
                continue
            covered = [part[2] for part in session.rows(f"PRAGMA index_info({quoted(index[1])})")]
            indexes.append({"table": name, "columns": covered, "unique": bool(index[2])})
    indexes.sort(key=lambda one: (one["table"], [part or "" for part in one["columns"]], one["unique"]))
    acts = session.rows("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY tbl_name, name")
    objects = [{"kind": "trigger", "on": table, "text": text} for table, text in acts]
    return {"tables": tables, "indexes": indexes, "objects": objects}


def shown_columns(session, table):
    """The columns that `SELECT *` shows, generated ones with them: `table_info` leaves those out."""
    return [column for column in session.rows(f"PRAGMA table_xinfo({quoted(table)})") if column[6] != 1]


def op_tables(request):
    with Session(request["db"], "read") as session:
        found = session.rows(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' ORDER BY type, name")
        return {"tables": [
            {"name": name, "kind": kind, "rows": session.rows(f"SELECT count(*) FROM {quoted(name)}")[0][0]}
            for name, kind in found
        ]}


def known_table(session, name):
    for (real,) in session.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
        if real.lower() == name.lower():
            return real
    raise sqlite3.OperationalError(f"no such table: {name}")


def op_describe(request):
    with Session(request["db"], "read") as session:
        table = known_table(session, request["table"])
        columns = [
            {"name": c[1], "type": c[2], "notNull": bool(c[3]), "default": c[4], "key": c[5]}
            for c in shown_columns(session, table)
        ]
        foreign = [
            {"from": key[3], "table": key[2], "to": key[4]}
            for key in session.rows(f"PRAGMA foreign_key_list({quoted(table)})")
        ]
        indexes = [
            {"columns": [part[2] for part in session.rows(f"PRAGMA index_info({quoted(one[1])})")],
             "unique": bool(one[2])}
            for one in session.rows(f"PRAGMA index_list({quoted(table)})")
        ]
    foreign.sort(key=lambda key: (key["from"], key["table"]))
    indexes.sort(key=lambda one: ([part or "" for part in one["columns"]], one["unique"]))
    return {"name": table, "columns": columns, "foreignKeys": foreign, "indexes": indexes}


def op_sample(request):
    """The first rows as the table keeps them: the same ones every time."""
    with Session(request["db"], "read") as session:
        table = known_table(session, request["table"])
        columns, rows, more = session.query(f"SELECT * FROM {quoted(table)}", request["maxRows"], request["maxBytes"])
        return {"columns": columns, "rows": rows, "more": more, "steps": session.steps}


def op_subset(request):
    """A neighbour by leaving rows out: some of each table, then whatever pointed to them, so that keys still hold."""
    shutil.copyfile(request["db"], request["out"])
    os.chmod(request["out"], 0o644)
    db = sqlite3.connect(request["out"], isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    pick = random.Random(request["seed"])
    tables = [name for (name,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")]
    triggers = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    kept = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
    for name in triggers:
        db.execute(f"DROP TRIGGER {quoted(name)}")
    for table in tables:
        try:
            ids = [row[0] for row in db.execute(f"SELECT rowid FROM {quoted(table)} ORDER BY rowid")]
        except sqlite3.OperationalError:
            continue  # WITHOUT ROWID
        gone = [(one,) for one in ids if pick.random() < request["fraction"]]
        db.executemany(f"DELETE FROM {quoted(table)} WHERE rowid = ?", gone)
    orphans(db, tables)
    for sql in kept:
        db.execute(sql)
    db.execute("COMMIT")
    db.close()
    return {}


def orphans(db, tables):
    deleted = True
    while deleted:
        deleted = False
        for table in tables:
            keys = {}
            for key in db.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
                keys.setdefault(key[0], []).append((key[2], key[3], key[4]))
            for parts in keys.values():
                parent = parts[0][0]
                primary = [c[1] for c in sorted(db.execute(f"PRAGMA table_info({quoted(parent)})"), key=lambda c: c[5])
                           if c[5] > 0]
                pairs = [(mine, theirs or primary[i]) for i, (_, mine, theirs) in enumerate(parts)]
                present = " AND ".join(f"c.{quoted(mine)} IS NOT NULL" for mine, _ in pairs)
                same = " AND ".join(f"p.{quoted(theirs)} = c.{quoted(mine)}" for mine, theirs in pairs)
                count = db.execute(
                    f"DELETE FROM {quoted(table)} AS c WHERE {present} AND NOT EXISTS "
                    f"(SELECT 1 FROM {quoted(parent)} AS p WHERE {same})").rowcount
                deleted = deleted or count > 0


def op_build(request):
    """The generator writes the file itself."""
    generate(request, request["out"])
    return {}


TIMED.append(timed)
STATEMENT_ERRORS.extend([sqlite3.Error, sqlite3.Warning])
OPS.update({
    "query": op_query, "script": op_script, "tables": op_tables, "describe": op_describe, "sample": op_sample,
    "build": op_build, "subset": op_subset,
})

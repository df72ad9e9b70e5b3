"""PostgreSQL for `frame.py`: a database is one of the server in the box, reached through libpq and ctypes.

The server runs as the box's own user, listens on a unix socket only and has three roles: `paddock` made it, `author` owns
the tables and runs scripts, `reader` may select. What a statement may do is the server's own access control.
"""
import contextlib
import ctypes

SOCKET = "/opt/paddock/postgres/run"
LIBRARY = "libpq.so.5"
# Result states and types as in libpq-fe.h and pg_type.dat.
EMPTY_QUERY, COMMAND_OK, TUPLES_OK, COPY_OUT, COPY_IN, COPY_BOTH, SINGLE_TUPLE = 0, 1, 2, 3, 4, 8, 9
BOOL, BYTEA, NUMERIC = 16, 17, 1700
INTEGERS = {20, 21, 23, 26}
FLOATS = {700, 701}
SQLSTATE = ord("C")
KINDS = {"42501": "refused", "25006": "refused", "57014": "timeout", "53200": "memory", "53100": "too_large",
         "53400": "too_large"}


def library():
    pq = ctypes.CDLL(LIBRARY)
    for name in ("PQconnectdb", "PQexecParams", "PQgetResult", "PQgetvalue"):
        getattr(pq, name).restype = ctypes.c_void_p
    for name in ("PQerrorMessage", "PQresultErrorField", "PQfname", "PQcmdTuples"):
        getattr(pq, name).restype = ctypes.c_char_p
    pq.PQftype.restype = ctypes.c_uint32
    return pq


PQ = library()


class ServerGone(SqlError):
    pass


class Session:
    """A connection of one role to one database."""

    def __init__(self, database, role):
        self.is_kept = self.is_spent = False
        options = "-c client_min_messages=error -c search_path=public -c client_encoding=UTF8 -c timezone=UTC -c datestyle=ISO -c intervalstyle=iso_8601"
        if role == "reader":
            options += " -c default_transaction_read_only=on"
        info = f"host={SOCKET} dbname={database} user={role} application_name=sql options='{options}'"
        until = time.monotonic() + 10
        while True:
            self.connection = ctypes.c_void_p(PQ.PQconnectdb(info.encode()))
            if PQ.PQstatus(self.connection) == 0:
                break
            said = PQ.PQerrorMessage(self.connection).decode("utf-8", "replace")
            PQ.PQfinish(self.connection)
            # The server comes back by itself after one of its processes was killed.
            if time.monotonic() > until or not re.search("starting up|recovery|No such file|refused|terminat", said):
                raise RuntimeError(f"PostgreSQL: {said}")
            time.sleep(0.02)
        self.backend = PQ.PQbackendPID(self.connection)
        self.mark()

    def mark(self):
        """So that the parent of a killed child can end it: a dead client does not end what the server does for it."""
        SHARED[:8] = self.backend.to_bytes(8, "little")

    def renew(self):
        """Whether it is as a new connection again. DISCARD ALL leaves nothing but the state of random()."""
        self.is_kept = False
        if not self.is_spent and PQ.PQtransactionStatus(self.connection) == 0:
            try:
                self.do("DISCARD ALL")
                self.do(f"SELECT setseed({random.SystemRandom().uniform(-1, 1)})")
                self.is_kept = True
            except (SqlError, Refused):
                pass  # the next statement gets a connection of its own
        return self.is_kept

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        if error is not None:
            self.is_kept = False
            self.end()
        if not self.is_kept:
            self.close()

    def results(self, sql, single, max_rows, max_bytes):
        """Columns, encoded rows, whether there were more and rows changed, of the last statement that gave rows."""
        text = text_of(sql)
        sent = (PQ.PQsendQueryParams(self.connection, text, 0, None, None, None, None, 0) if single
                else PQ.PQsendQuery(self.connection, text))
        if sent != 1:
            raise RuntimeError(f"PostgreSQL: {PQ.PQerrorMessage(self.connection)}")
        PQ.PQsetSingleRowMode(self.connection)
        columns, shown, changed, fault = [], Shown(max_rows, max_bytes), 0, None
        fresh = True
        while pointer := PQ.PQgetResult(self.connection):
            result = ctypes.c_void_p(pointer)
            state = PQ.PQresultStatus(result)
            if state in (TUPLES_OK, SINGLE_TUPLE):
                if fresh:
                    columns, shown = names_of(result), Shown(max_rows, max_bytes)
                fresh = state == TUPLES_OK
                for row in range(PQ.PQntuples(result)):
                    if not shown.takes():
                        break
                    shown.add(values_of(result, row, shown))
            elif state == COMMAND_OK:
                changed += int(PQ.PQcmdTuples(result) or b"0")
            elif state == EMPTY_QUERY:
                pass
            elif state in (COPY_IN, COPY_OUT, COPY_BOTH):
                raise SqlError("COPY from or to the client is not possible here")
            else:
                fault = fault or fault_of(result)
            PQ.PQclear(result)
            # What is left of an endless result is not read; the connection is not used again.
            if shown.more and single:
                self.is_spent = True
                self.end()
                break
        if fault is not None:
            raise fault
        return columns, shown.rows, shown.more, changed

    def end(self):
        """Ends what the server still does for it."""
        try:
            os.kill(self.backend, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def rows(self, sql):
        """For our own questions: decoded cells."""
        _columns, rows, _more, _changed = self.results(sql, True, 1 << 30, 1 << 30)
        return [[None if cell is None else int(cell[1:]) if cell[0] == "i" else cell[1:] for cell in row]
                for row in rows]

    def do(self, sql):
        self.results(sql, False, 1 << 30, 1 << 30)

    def close(self):
        PQ.PQfinish(self.connection)
        SHARED[:8] = bytes(8)


def text_of(sql):
    if "\0" in sql:
        raise SqlError("there is a NUL character in the statement")
    return sql.encode("utf-8", "surrogateescape")


def names_of(result):
    return [PQ.PQfname(result, at).decode("utf-8", "replace") for at in range(PQ.PQnfields(result))]


def values_of(result, row, shown):
    for at in range(PQ.PQnfields(result)):
        if PQ.PQgetisnull(result, row, at):
            yield None
            continue
        raw = ctypes.string_at(PQ.PQgetvalue(result, row, at), PQ.PQgetlength(result, row, at))
        shown.require_fitting(raw)
        yield value_of(raw.decode("utf-8", "surrogateescape"), PQ.PQftype(result, at))


def value_of(text, kind):
    """A NUMERIC without a fraction is an integer, any other a double: the two kinds of numbers that are compared."""
    if kind in INTEGERS:
        return int(text)
    if kind in FLOATS:
        return float(text)
    if kind == NUMERIC:
        whole, _, fraction = text.partition(".")
        return int(whole) if fraction.strip("0") == "" and whole.lstrip("-").isdigit() else float(text)
    if kind == BOOL:
        return "true" if text == "t" else "false"
    if kind == BYTEA:
        return bytes.fromhex(text[2:])
    return text


def fault_of(result):
    state = (PQ.PQresultErrorField(result, SQLSTATE) or b"").decode()
    message = (PQ.PQresultErrorField(result, ord("M")) or b"the server failed").decode("utf-8", "replace")
    kind = KINDS.get(state, "sql")
    if state.startswith("57P") or state == "":
        return ServerGone("the server ended the statement", "memory")
    return Refused(message) if kind == "refused" else SqlError(message, kind)


# Connections of the reader that are as new, by database.
KEPT = {}


@contextlib.contextmanager
def reading(database):
    """A connection of the reader, kept for the next statement when it can be made as new; an error ends it."""
    session = KEPT.pop(database, None) or Session(database, "reader")
    session.mark()
    with session:
        yield session
        if session.renew():
            KEPT[database] = session


def op_query(request):
    was_kept = request["db"] in KEPT
    try:
        return query(request)
    except ServerGone:
        # The server came up anew since the connection was made.
        if not was_kept:
            raise
        return query(request)


def query(request):
    with reading(request["db"]) as session:
        # The extended protocol takes one statement only.
        columns, rows, more, _changed = session.results(
            request["sql"], True, request["maxRows"], request["maxBytes"])
        if not columns:
            raise SqlError("the statement gives no rows")
        return {"columns": columns, "rows": rows, "more": more, "steps": 0}


def timed(request):
    session = Session(request["db"], "reader")
    text = text_of(request["sql"])

    def run():
        """The whole result comes into the client, and none of it is read."""
        result = ctypes.c_void_p(PQ.PQexecParams(session.connection, text, 0, None, None, None, None, 0))
        try:
            if PQ.PQresultStatus(result) != TUPLES_OK:
                raise fault_of(result)
        finally:
            PQ.PQclear(result)
    return run


def op_script(request):
    """A script of any statements on a copy that nobody else sees; `state` asks for what the database holds then."""
    copy = copy_of(request)
    with Session("postgres", "paddock") as maker:
        # Nobody is ever connected to the originals, so a copy can be made at any time.
        make_copy(maker, copy, request["db"])
    with Session(copy, "author") as session:
        columns, rows, more, changes = [], [], False, 0
        if request["sql"].strip() != "":
            columns, rows, more, changes = session.results(
                request["sql"], False, request["maxRows"], request["maxBytes"])
        session.do("ROLLBACK")
    result = {"columns": columns, "rows": rows, "more": more, "changes": changes, "steps": 0}
    if not request.get("state"):
        return result
    # Over another connection: a script may have set anything of its own session.
    with Session(copy, "author") as session:
        session.do("RESET ALL; SET search_path = public; SET timezone = UTC")
        result["probes"] = [probe(session, sql) for sql in request.get("probes", [])]
        result["state"] = state_of(session, request["maxRows"], request["maxBytes"])
    return result


def end_backend(shared):
    """A client that is gone does not end what the server does for it."""
    backend = int.from_bytes(shared[:8], "little")
    if backend == 0:
        return
    try:
        os.kill(backend, signal.SIGTERM)
        # SIGKILL restarts the whole server, so it is for a process that will not go, not for a busy machine.
        until = time.monotonic() + 3
        while time.monotonic() < until:
            os.kill(backend, 0)
            time.sleep(0.001)
        os.kill(backend, signal.SIGKILL)
    except ProcessLookupError:
        pass


def drop_copy(request):
    until = time.monotonic() + 10
    while True:
        try:
            with Session("postgres", "paddock") as maker:
                return maker.do(f"DROP DATABASE IF EXISTS {quoted(copy_of(request))} WITH (FORCE)")
        except SqlError:  # the server came up anew meanwhile
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def copy_of(request):
    return "copy_" + os.path.basename(request["scratch"]).lower().replace("-", "_")


def make_copy(maker, name, database):
    """The author may do anything inside, and is not its owner, who alone can drop it or change its settings."""
    maker.do(f"CREATE DATABASE {quoted(name)} TEMPLATE {quoted(original_of(database))}")
    maker.do(f"GRANT ALL ON DATABASE {quoted(name)} TO author")


def original_of(database):
    return database + "_original"


def probe(session, sql):
    try:
        _columns, rows, _more, _changed = session.results(sql, True, 1000, 1 << 20)
        return {"ok": True, "rows": rows}
    except (SqlError, Refused):
        return {"ok": False, "rows": []}


def literal_of(text):
    return "'" + text.replace("'", "''") + "'"


def relations(session):
    """Oid, name, kind: tables and views of all schemas, those of `public` by their bare names."""
    return session.rows(
        "SELECT c.oid, CASE WHEN n.nspname = 'public' THEN '' ELSE n.nspname || '.' END || c.relname, "
        "CASE WHEN c.relkind IN ('r', 'p') THEN 'table' ELSE 'view' END "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relpersistence <> 't' "
        "AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 3, 2")


def columns_of(session, oid):
    keys = dict(reversed(pair) for pair in session.rows(
        "SELECT k.place, a.attname FROM pg_catalog.pg_index i, "
        "LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place), pg_catalog.pg_attribute a "
        f"WHERE i.indrelid = {oid} AND i.indisprimary AND a.attrelid = {oid} AND a.attnum = k.number"))
    return [
        {"name": name, "type": kind.upper(), "notNull": not_null == "true" and name not in keys, "default": default,
         "key": keys.get(name, 0)}
        for name, kind, not_null, default in session.rows(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, "
            "pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attribute a "
            "LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            f"WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum")
    ]


def foreign_keys(session, oid):
    return session.rows(
        "SELECT a.attname, r.relname, f.attname FROM pg_catalog.pg_constraint c, "
        "LATERAL unnest(c.conkey, c.confkey) AS k(mine, theirs), pg_catalog.pg_attribute a, pg_catalog.pg_class r, "
        f"pg_catalog.pg_attribute f WHERE c.conrelid = {oid} AND c.contype = 'f' AND a.attrelid = c.conrelid "
        "AND a.attnum = k.mine AND r.oid = c.confrelid AND f.attrelid = c.confrelid AND f.attnum = k.theirs "
        "ORDER BY 1, 2, 3")


def indexes_of(session, oid, constraints):
    """Indexes by what they cover; those that only carry a key are left out unless asked for."""
    own = "" if constraints else (
        "AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint c WHERE c.conindid = i.indexrelid)")
    found = session.rows(
        "SELECT i.indisunique, a.attname, i.indexrelid FROM pg_catalog.pg_index i, "
        "LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place) LEFT JOIN pg_catalog.pg_attribute a "
        f"ON a.attrelid = {oid} AND a.attnum = k.number AND k.number > 0 "
        f"WHERE i.indrelid = {oid} {own} ORDER BY i.indexrelid, k.place")
    by_index = {}
    for unique, column, index in found:
        by_index.setdefault(index, {"columns": [], "unique": unique == "true"})["columns"].append(column)
    return sorted(by_index.values(), key=lambda one: ([part or "" for part in one["columns"]], one["unique"]))


def name_of(name):
    schema, _, table = name.rpartition(".")
    return f"{quoted(schema or 'public')}.{quoted(table)}"


def state_of(session, max_rows, max_bytes):
    tables, indexes, size = [], [], 0
    for oid, name, kind in relations(session):
        columns = [{key: column[key] for key in ("name", "type", "notNull", "key")}
                   for column in columns_of(session, oid)]
        _names, rows, more, _changed = session.results(f"SELECT * FROM {name_of(name)}", True, max_rows, max_bytes)
        size += sum(len(cell) if cell is not None else 4 for row in rows for cell in row)
        if more or size > max_bytes:
            raise TooLarge(f"the {kind} {name} is larger than can be compared")
        foreign = foreign_keys(session, oid)
        tables.append({"name": name, "kind": kind, "columns": columns, "rows": rows, "foreignKeys": foreign})
        indexes.extend({"table": name, **one} for one in indexes_of(session, oid, False))
    return {"tables": tables, "indexes": indexes, "objects": objects_of(session)}


OWN = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'"
TABLE = "CASE WHEN n.nspname = 'public' THEN '' ELSE n.nspname || '.' END || c.relname"


def objects_of(session):
    """Triggers with their functions, rules, and the functions of no trigger, by the text that the server gives them."""
    on_tables = session.rows(
        f"SELECT 'trigger', {TABLE}, pg_catalog.pg_get_triggerdef(t.oid) || pg_catalog.pg_get_functiondef(t.tgfoid) "
        "FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid "
        f"JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE NOT t.tgisinternal AND {OWN} UNION ALL "
        f"SELECT 'rule', {TABLE}, pg_catalog.pg_get_ruledef(r.oid) FROM pg_catalog.pg_rewrite r "
        "JOIN pg_catalog.pg_class c ON c.oid = r.ev_class JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE r.rulename <> '_RETURN' AND {OWN} ORDER BY 1, 2, 3")
    functions = session.rows(
        "SELECT CASE WHEN p.prokind = 'a' THEN p.oid::pg_catalog.regprocedure::text "
        "ELSE pg_catalog.pg_get_functiondef(p.oid) END "
        f"FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE {OWN} "
        "AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgfoid = p.oid) AND NOT EXISTS "
        "(SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1")
    return ([{"kind": kind, "on": table, "text": text} for kind, table, text in on_tables]
            + [{"kind": "function", "on": "", "text": text} for (text,) in functions])


def known_table(session, name):
    for oid, real, _kind in relations(session):
        if real.lower() == name.lower():
            return oid, real
    raise SqlError(f"no such table: {name}")


def op_tables(request):
    with reading(request["db"]) as session:
        return {"tables": [
            {"name": name, "kind": kind, "rows": session.rows(f"SELECT count(*) FROM {name_of(name)}")[0][0]}
            for _oid, name, kind in relations(session)
        ]}


def op_describe(request):
    with reading(request["db"]) as session:
        oid, table = known_table(session, request["table"])
        foreign = [{"from": mine, "table": other, "to": theirs} for mine, other, theirs in foreign_keys(session, oid)]
        return {"name": table, "columns": columns_of(session, oid), "foreignKeys": foreign,
                "indexes": indexes_of(session, oid, True)}


def op_sample(request):
    """The first rows as the table keeps them: the same ones every time."""
    with reading(request["db"]) as session:
        _oid, table = known_table(session, request["table"])
        columns, rows, more, _changed = session.results(
            f"SELECT * FROM {name_of(table)}", True, request["maxRows"], request["maxBytes"])
        return {"columns": columns, "rows": rows, "more": more, "steps": 0}


def op_build(request):
    """The generator writes a script of SQL, which is run into new databases."""
    script = os.path.join("/tmp", request["out"] + ".sql")
    generate(request, script)
    with open(script, encoding="utf-8") as file:
        make_databases(request["out"], file.read())
    os.unlink(script)
    return {}


def make_databases(name, sql):
    """The database that is read, and the original that copies are made from."""
    maker = Session("postgres", "paddock")
    for database in (name, original_of(name)):
        maker.do(f"DROP DATABASE IF EXISTS {quoted(database)} WITH (FORCE)")
    maker.do(f"CREATE DATABASE {quoted(name)}")
    inside = Session(name, "paddock")
    inside.do("ALTER SCHEMA public OWNER TO author")
    inside.do(f"GRANT ALL ON DATABASE {quoted(name)} TO author")
    inside.close()
    author = Session(name, "author")
    author.do(sql)
    author.close()
    finish(maker, name)
    maker.close()


def finish(maker, name):
    """Statistics, so that plans are always the same; the rights of the reader; and the original."""
    inside = Session(name, "paddock")
    inside.do(f"REVOKE ALL ON DATABASE {quoted(name)} FROM PUBLIC, author")
    inside.do(f"GRANT CONNECT ON DATABASE {quoted(name)} TO reader")
    inside.do(
        "DO $$ DECLARE s name; f regprocedure; BEGIN "
        "FOR s IN SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' "
        "LOOP EXECUTE format('REVOKE ALL ON SCHEMA %I FROM PUBLIC', s); "
        "EXECUTE format('GRANT ALL ON SCHEMA %I TO author', s); "
        "EXECUTE format('GRANT USAGE ON SCHEMA %I TO reader', s); "
        "EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO reader', s); END LOOP; "
        # A large object can be made where nothing else can be written; signals are for the server's owner.
        "FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'pg_catalog' "
        "AND (p.proname LIKE 'lo\\_%' OR p.proname IN ('lowrite', 'pg_terminate_backend', 'pg_cancel_backend')) "
        "LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f); END LOOP; END $$")
    inside.do("VACUUM (ANALYZE, FREEZE)")
    inside.close()
    maker.do(f"CREATE DATABASE {quoted(original_of(name))} TEMPLATE {quoted(name)}")


def make_roles():
    """Once, when the server is made."""
    maker = Session("postgres", "paddock")
    maker.do("CREATE ROLE author LOGIN; CREATE ROLE reader LOGIN; "
             "REVOKE ALL ON DATABASE template1, postgres FROM PUBLIC")
    maker.close()


def op_subset(request):
    """A neighbour by leaving rows out: some of each table, then whatever pointed to them, so that keys still hold."""
    maker = Session("postgres", "paddock")
    for database in (request["out"], original_of(request["out"])):
        maker.do(f"DROP DATABASE IF EXISTS {quoted(database)} WITH (FORCE)")
    make_copy(maker, request["out"], request["db"])
    inside = Session(request["out"], "paddock")
    # Neither triggers nor foreign keys act while rows leave.
    inside.do("SET session_replication_role = replica")
    pick = random.Random(request["seed"])
    tables = [(oid, name) for oid, name, kind in relations(inside) if kind == "table"]
    for _oid, name in tables:
        ids = [row[0] for row in inside.rows(f"SELECT ctid::text FROM ONLY {name_of(name)} ORDER BY ctid")]
        gone = [one for one in ids if pick.random() < request["fraction"]]
        if gone:
            listed = ", ".join(literal_of(one) for one in gone)
            inside.do(f"DELETE FROM {name_of(name)} WHERE ctid = ANY (ARRAY[{listed}]::tid[])")
    orphans(inside, tables)
    inside.close()
    finish(maker, request["out"])
    return {}


def orphans(session, tables):
    keys = []
    for oid, name in tables:
        found = session.rows(
            "SELECT c.oid, n.nspname || '.' || r.relname, a.attname, f.attname FROM pg_catalog.pg_constraint c, "
            "LATERAL unnest(c.conkey, c.confkey) AS k(mine, theirs), pg_catalog.pg_attribute a, pg_catalog.pg_class r, "
            f"pg_catalog.pg_namespace n, pg_catalog.pg_attribute f WHERE c.conrelid = {oid} AND c.contype = 'f' "
            "AND a.attrelid = c.conrelid AND a.attnum = k.mine AND r.oid = c.confrelid AND n.oid = r.relnamespace "
            "AND f.attrelid = c.confrelid AND f.attnum = k.theirs")
        by_key = {}
        for key, parent, mine, theirs in found:
            by_key.setdefault((key, parent), []).append((mine, theirs))
        keys.extend((name, parent, pairs) for (_key, parent), pairs in sorted(by_key.items()))
    deleted = True
    while deleted:
        deleted = False
        for name, parent, pairs in keys:
            present = " AND ".join(f"c.{quoted(mine)} IS NOT NULL" for mine, _ in pairs)
            same = " AND ".join(f"p.{quoted(theirs)} = c.{quoted(mine)}" for mine, theirs in pairs)
            changed = session.results(
                f"DELETE FROM {name_of(name)} AS c WHERE {present} AND NOT EXISTS "
                f"(SELECT 1 FROM {name_of(parent)} AS p WHERE {same})", True, 1, 1)[3]
            deleted = deleted or changed > 0


TIMED.append(timed)
END.append(end_backend)
TIDY.append(drop_copy)
PREPARE.append(lambda request: 256 << 20)
OPS.update({
    "query": op_query, "script": op_script, "tables": op_tables, "describe": op_describe, "sample": op_sample,
    "build": op_build, "subset": op_subset,
})

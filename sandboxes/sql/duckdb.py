"""DuckDB for `frame.py`: a database is a file, the engine is `libduckdb.so` of the npm package, called through ctypes.

The C API as in `duckdb.h` of 1.5. A result is read chunk by chunk, so that a row limit ends an endless one.
"""
import contextlib
import ctypes
import datetime

LIBRARY = "/opt/paddock/duckdb/libduckdb.so"
# Address space that the library, its threads and its allocator reserve beside the memory that they use.
RESERVED = 768 << 20
SELECT, EXPLAIN = 1, 4  # duckdb_statement_type
# COPY, EXPORT, PRAGMA, SET (two of them), LOAD, EXTENSION, ATTACH, DETACH, CALL: nothing that reaches out of the copy.
NEVER = {11, 16, 17, 13, 20, 21, 23, 25, 26, 19}
INTEGERS = {
    2: ctypes.c_int8, 3: ctypes.c_int16, 4: ctypes.c_int32, 5: ctypes.c_int64,
    6: ctypes.c_uint8, 7: ctypes.c_uint16, 8: ctypes.c_uint32, 9: ctypes.c_uint64,
}
EPOCH = datetime.datetime(1970, 1, 1)
# Units per second of TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, TIMESTAMPTZ.
TIMESTAMPS = {12: 10**6, 20: 1, 21: 10**3, 22: 10**9, 31: 10**6}
(BOOLEAN, FLOAT, DOUBLE, DATE, TIME, INTERVAL, HUGEINT, VARCHAR, BLOB, DECIMAL, ENUM, UUID, UHUGEINT, SQLNULL) = (
    1, 10, 11, 13, 14, 15, 16, 17, 18, 19, 23, 27, 32, 36)


class Result(ctypes.Structure):
    _fields_ = [("deprecated", ctypes.c_uint64 * 5), ("internal", ctypes.c_void_p)]


class Interval(ctypes.Structure):
    _fields_ = [("months", ctypes.c_int32), ("days", ctypes.c_int32), ("micros", ctypes.c_int64)]


class Text(ctypes.Structure):
    """duckdb_string_t: up to twelve bytes stand in it, longer ones behind a pointer."""
    _fields_ = [("length", ctypes.c_uint32), ("prefix", ctypes.c_char * 4), ("pointer", ctypes.c_void_p)]


def library():
    duck = ctypes.CDLL(LIBRARY)
    for name in ("column_logical_type", "vector_get_data", "vector_get_validity", "data_chunk_get_vector",
                 "fetch_chunk", "enum_dictionary_value"):
        getattr(duck, "duckdb_" + name).restype = ctypes.c_void_p
    for name in ("column_name", "result_error", "prepare_error", "extract_statements_error"):
        getattr(duck, "duckdb_" + name).restype = ctypes.c_char_p
    for name in ("column_count", "data_chunk_get_size", "extract_statements", "rows_changed"):
        getattr(duck, "duckdb_" + name).restype = ctypes.c_uint64
    duck.duckdb_fetch_chunk.argtypes = [Result]
    duck.duckdb_free.argtypes = [ctypes.c_void_p]
    return duck


DUCK = library()


# Databases that this process reads, by path: opening one takes longer than most statements. What a statement could leave
# behind (settings, temporary tables) is its connection's, and each has one of its own.
READ = {}


class Column:
    """Reads one column of a chunk."""

    def __init__(self, result, at):
        self.type = DUCK.duckdb_column_type(ctypes.byref(result), ctypes.c_uint64(at))
        self.name = DUCK.duckdb_column_name(ctypes.byref(result), ctypes.c_uint64(at)).decode("utf-8", "replace")
        logical = ctypes.c_void_p(DUCK.duckdb_column_logical_type(ctypes.byref(result), ctypes.c_uint64(at)))
        self.width = self.scale = 0
        self.names = []
        if self.type == DECIMAL:
            self.width, self.scale = DUCK.duckdb_decimal_width(logical), DUCK.duckdb_decimal_scale(logical)
        if self.type == ENUM:
            self.code = INTEGERS[DUCK.duckdb_enum_internal_type(logical)]
            for one in range(DUCK.duckdb_enum_dictionary_size(logical)):
                text = ctypes.c_void_p(DUCK.duckdb_enum_dictionary_value(logical, ctypes.c_uint64(one)))
                self.names.append(ctypes.string_at(text).decode("utf-8", "replace"))
                DUCK.duckdb_free(text)
        DUCK.duckdb_destroy_logical_type(ctypes.byref(logical))
        self.read = self.reader()

    def reader(self):
        kind = self.type
        if kind in INTEGERS:
            return lambda data, row: array_at(data, INTEGERS[kind], row)
        if kind in (HUGEINT, UHUGEINT):
            return lambda data, row: huge_at(data, row, kind == HUGEINT)
        if kind == BOOLEAN:
            return lambda data, row: "true" if array_at(data, ctypes.c_uint8, row) else "false"
        if kind in (FLOAT, DOUBLE):
            one = ctypes.c_float if kind == FLOAT else ctypes.c_double
            return lambda data, row: array_at(data, one, row)
        if kind == DECIMAL:
            return lambda data, row: number_of(self.unscaled(data, row), self.scale)
        if kind == VARCHAR:
            return lambda data, row: bytes_at(data, row).decode("utf-8", "surrogateescape")
        if kind == BLOB:
            return bytes_at
        if kind == DATE:
            return lambda data, row: date_text(array_at(data, ctypes.c_int32, row))
        if kind == TIME:
            return lambda data, row: time_text(array_at(data, ctypes.c_int64, row))
        if kind in TIMESTAMPS:
            zone = "+00" if kind == 31 else ""
            return lambda data, row: timestamp_text(array_at(data, ctypes.c_int64, row), TIMESTAMPS[kind]) + zone
        if kind == INTERVAL:
            return lambda data, row: interval_text(array_at(data, Interval, row))
        if kind == ENUM:
            return lambda data, row: self.names[array_at(data, self.code, row)]
        if kind == UUID:
            return lambda data, row: uuid_text(huge_at(data, row, True))
        if kind == SQLNULL:
            return lambda data, row: None
        raise SqlError(f"the column {self.name} has a nested or special type; cast it to VARCHAR")

    def unscaled(self, data, row):
        if self.width > 18:
            return huge_at(data, row, True)
        size = ctypes.c_int16 if self.width <= 4 else ctypes.c_int32 if self.width <= 9 else ctypes.c_int64
        return array_at(data, size, row)


def array_at(data, kind, row):
    found = kind.from_address(data + row * ctypes.sizeof(kind))
    return found if isinstance(found, ctypes.Structure) else found.value


def is_valid(validity, row):
    """Sixty-four rows to a word; no words where nothing is NULL."""
    return not validity or (ctypes.c_uint64.from_address(validity + 8 * (row // 64)).value >> row % 64) & 1


def huge_at(data, row, signed):
    return int.from_bytes(ctypes.string_at(data + 16 * row, 16), "little", signed=signed)


def bytes_at(data, row):
    text = array_at(data, Text, row)
    if text.length <= 12:
        return ctypes.string_at(data + 16 * row + 4, text.length)
    return ctypes.string_at(text.pointer, text.length)


def number_of(unscaled, scale):
    """A decimal without a fraction is an integer, any other a double: the two kinds of numbers that are compared."""
    whole, rest = divmod(unscaled, 10**scale)
    return whole if rest == 0 else unscaled / 10**scale


def date_text(days):
    try:
        return (EPOCH + datetime.timedelta(days=days)).strftime("%Y-%m-%d").rjust(10, "0")
    except OverflowError:
        return f"{days} days after 1970-01-01"


def time_text(micros):
    return (EPOCH + datetime.timedelta(microseconds=micros)).time().isoformat()


def timestamp_text(value, per_second):
    seconds, rest = divmod(value, per_second)
    try:
        text = (EPOCH + datetime.timedelta(seconds=seconds)).isoformat(" ")
    except OverflowError:
        return f"{seconds} seconds after 1970-01-01"
    digits = str(rest + per_second)[1:].rstrip("0") if rest else ""
    return text + ("." + digits if digits else "")


def interval_text(value):
    return f"{value.months} months {value.days} days {value.micros} microseconds"


def uuid_text(value):
    # The first bit is stored flipped, so that UUIDs sort as integers.
    digits = f"{(value ^ (1 << 127)) & (2**128 - 1):032x}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


class Session:
    """A connection that can leave its file by no statement; `mode`: read, write, or build for the author's script."""

    def __init__(self, path, mode, memory_mb=256):
        self.mode = mode
        self.kept = mode == "read"
        self.db, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        if self.kept and path in READ:
            self.db = READ[path]
        else:
            self.open(path, mode, memory_mb)
        if DUCK.duckdb_connect(self.db, ctypes.byref(self.connection)) != 0:
            raise RuntimeError("DuckDB gives no connection")
        if self.kept:
            READ[path] = self.db

    def open(self, path, mode, memory_mb):
        config, error = ctypes.c_void_p(), ctypes.c_char_p()
        DUCK.duckdb_create_config(ctypes.byref(config))
        for name, value in {
            "temp_directory": "",  # before the file system is shut
            "access_mode": "READ_ONLY" if mode == "read" else "READ_WRITE",
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "threads": "1",
            "memory_limit": f"{memory_mb}MB",
            "lock_configuration": "true",
            # A checkpoint of its own may move rows while they are told by their places.
            "checkpoint_threshold": "1TB" if mode == "build" else "16MB",
        }.items():
            if DUCK.duckdb_set_config(config, name.encode(), value.encode()) != 0:
                raise RuntimeError(f"DuckDB does not know {name}")
        if DUCK.duckdb_open_ext(path.encode(), ctypes.byref(self.db), config, ctypes.byref(error)) != 0:
            raise RuntimeError(f"DuckDB: {(error.value or b'').decode('utf-8', 'replace')}")
        DUCK.duckdb_destroy_config(ctypes.byref(config))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @contextlib.contextmanager
    def statements(self, sql):
        """How many statements there are, and where they are kept."""
        extracted = ctypes.c_void_p()
        count = DUCK.duckdb_extract_statements(self.connection, text_of(sql), ctypes.byref(extracted))
        try:
            if count == 0:
                said = DUCK.duckdb_extract_statements_error(extracted)
                raise failure(said.decode("utf-8", "replace") if said else "there is no statement")
            yield count, extracted
        finally:
            DUCK.duckdb_destroy_extracted(ctypes.byref(extracted))

    @contextlib.contextmanager
    def result_of(self, extracted, at):
        """The kind of one statement and its result."""
        statement, result = ctypes.c_void_p(), Result()
        try:
            if DUCK.duckdb_prepare_extracted_statement(
                    self.connection, extracted, ctypes.c_uint64(at), ctypes.byref(statement)) != 0:
                raise failure(DUCK.duckdb_prepare_error(statement).decode("utf-8", "replace"))
            kind = DUCK.duckdb_prepared_statement_type(statement)
            if self.mode == "read" and kind not in (SELECT, EXPLAIN):
                raise Refused("the database is read-only: one SELECT, WITH, VALUES or EXPLAIN")
            if self.mode == "write" and kind in NEVER:
                raise Refused("COPY, EXPORT, ATTACH, DETACH, LOAD, CALL, PRAGMA and SET are not allowed")
            if DUCK.duckdb_execute_prepared_streaming(statement, ctypes.byref(result)) != 0:
                said = DUCK.duckdb_result_error(ctypes.byref(result))
                raise failure(said.decode("utf-8", "replace"))
            yield kind, result
        finally:
            DUCK.duckdb_destroy_result(ctypes.byref(result))
            DUCK.duckdb_destroy_prepare(ctypes.byref(statement))

    def run(self, extracted, at, max_rows, max_bytes):
        """Columns, encoded rows, whether there were more, and rows changed, of one statement."""
        with self.result_of(extracted, at) as (kind, result):
            if kind in (SELECT, EXPLAIN):
                return (*self.rows_of(result, max_rows, max_bytes), 0)
            self.exhaust(result)
            return [], [], False, DUCK.duckdb_rows_changed(ctypes.byref(result))

    def exhaust(self, result):
        while chunk := DUCK.duckdb_fetch_chunk(result):
            DUCK.duckdb_destroy_data_chunk(ctypes.byref(ctypes.c_void_p(chunk)))
        self.check(result)

    def rows_of(self, result, max_rows, max_bytes):
        columns = [Column(result, at) for at in range(DUCK.duckdb_column_count(ctypes.byref(result)))]
        shown = Shown(max_rows, max_bytes)
        while not shown.more and (chunk := DUCK.duckdb_fetch_chunk(result)):
            here = ctypes.c_void_p(chunk)
            try:
                self.read_chunk(here, columns, shown)
            finally:
                DUCK.duckdb_destroy_data_chunk(ctypes.byref(here))
        if not shown.more:
            self.check(result)
        return [column.name for column in columns], shown.rows, shown.more

    def read_chunk(self, chunk, columns, shown):
        vectors = [ctypes.c_void_p(DUCK.duckdb_data_chunk_get_vector(chunk, ctypes.c_uint64(at)))
                   for at in range(len(columns))]
        parts = [(DUCK.duckdb_vector_get_data(one), DUCK.duckdb_vector_get_validity(one)) for one in vectors]
        for row in range(DUCK.duckdb_data_chunk_get_size(chunk)):
            if not shown.takes():
                return
            shown.add(column.read(data, row) if is_valid(validity, row) else None
                      for column, (data, validity) in zip(columns, parts))

    def check(self, result):
        """A streamed result tells its error where its rows end."""
        said = DUCK.duckdb_result_error(ctypes.byref(result))
        if said:
            raise failure(said.decode("utf-8", "replace"))

    def query(self, sql, max_rows, max_bytes):
        with self.statements(sql) as (count, extracted):
            if count != 1:
                raise SqlError("give one statement at a time")
            return self.run(extracted, 0, max_rows, max_bytes)[:3]

    def change(self, sql):
        """How many rows a statement of ours changed."""
        with self.statements(sql) as (_count, extracted):
            return self.run(extracted, 0, 1, 1 << 20)[3]

    def rows(self, sql):
        """For our own questions: decoded cells."""
        _columns, rows, _more = self.query(sql, 1 << 30, 1 << 30)
        return [[None if cell is None else int(cell[1:]) if cell[0] == "i" else cell[1:] for cell in row]
                for row in rows]

    def close(self):
        DUCK.duckdb_disconnect(ctypes.byref(self.connection))
        if not self.kept:
            DUCK.duckdb_close(ctypes.byref(self.db))


def text_of(sql):
    if "\0" in sql:
        raise SqlError("there is a NUL character in the statement")
    return sql.encode("utf-8", "surrogateescape")


def failure(message):
    """DuckDB's errors begin with their class."""
    if message.startswith("Permission Error") or "attached in read-only mode" in message:
        return Refused(message)
    if message.startswith("Out of Memory Error"):
        return SqlError("out of memory", "memory")
    # With nothing on disk an operator that would spill fails so.
    return SqlError(message.split("\n\nLINE", 1)[0])


def literal_of(text):
    return "'" + text.replace("'", "''") + "'"


def op_query(request):
    with Session(request["db"], "read", request["memoryMb"]) as session:
        columns, rows, more = session.query(request["sql"], request["maxRows"], request["maxBytes"])
        return {"columns": columns, "rows": rows, "more": more, "steps": 0}


def timed(request):
    session = Session(request["db"], "read", request["memoryMb"])

    def run():
        with session.statements(request["sql"]) as (_count, extracted):
            with session.result_of(extracted, 0) as (_kind, result):
                session.exhaust(result)
    return run


def op_script(request):
    """A script of any statements on a copy that nobody else sees; `state` asks for what the database holds then."""
    path = os.path.join(request["scratch"], "copy.duckdb")
    shutil.copyfile(request["db"], path)
    os.chmod(path, 0o600)
    session = Session(path, "write", request["memoryMb"])
    columns, rows, more, changes = [], [], False, 0
    if request["sql"].strip() != "":
        with session.statements(request["sql"]) as (count, extracted):
            for at in range(count):
                shown = session.run(extracted, at, request["maxRows"], request["maxBytes"])
                changes += shown[3]
                if shown[0]:
                    columns, rows, more = shown[:3]
    try:
        session.query("ROLLBACK", 1, 1)
    except SqlError:
        pass  # no transaction was left open
    session.close()
    result = {"columns": columns, "rows": rows, "more": more, "changes": changes, "steps": 0}
    if not request.get("state"):
        return result
    # Opened anew: temporary tables and macros are the script's own and nothing that the database holds.
    with Session(path, "write", request["memoryMb"]) as session:
        result["probes"] = [probe(session, sql) for sql in request.get("probes", [])]
        result["state"] = state_of(session, request["maxRows"], request["maxBytes"])
    return result


def probe(session, sql):
    try:
        _columns, rows, _more = session.query(sql, 1000, 1 << 20)
        return {"ok": True, "rows": rows}
    except (SqlError, Refused):
        return {"ok": False, "rows": []}


def relations(session):
    """Name, kind: tables and views of all schemas, those of `main` by their bare names."""
    return session.rows(
        "SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || table_name AS n, 'table' AS k "
        "FROM system.main.duckdb_tables() WHERE NOT internal AND NOT temporary UNION ALL "
        "SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || view_name, 'view' "
        "FROM system.main.duckdb_views() WHERE NOT internal AND NOT temporary ORDER BY k, n")


def parts_of(name):
    schema, _, table = name.rpartition(".")
    return (schema or "main", table)


def columns_of(session, name):
    schema, table = parts_of(name)
    where = f"schema_name = {literal_of(schema)} AND table_name = {literal_of(table)}"
    keys = {column: at + 1 for at, (column,) in enumerate(session.rows(
        f"SELECT unnest(constraint_column_names) FROM system.main.duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY' "
        f"AND {where}"))}
    return [
        {"name": column, "type": kind, "notNull": nullable == "false" and column not in keys,
         "default": default, "key": keys.get(column, 0)}
        for column, kind, nullable, default in session.rows(
            f"SELECT column_name, data_type, is_nullable, column_default FROM system.main.duckdb_columns() WHERE {where} "
            "ORDER BY column_index")
    ]


def foreign_keys(session, name):
    schema, table = parts_of(name)
    return session.rows(
        "SELECT unnest(constraint_column_names) AS f, referenced_table AS t, unnest(referenced_column_names) AS r "
        f"FROM system.main.duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND schema_name = {literal_of(schema)} "
        f"AND table_name = {literal_of(table)} ORDER BY f, t, r")


def indexes_of(session, name):
    schema, table = parts_of(name)
    found = session.rows(
        "SELECT CAST(expressions AS VARCHAR) AS e, is_unique FROM system.main.duckdb_indexes() "
        f"WHERE schema_name = {literal_of(schema)} AND table_name = {literal_of(table)} ORDER BY e, is_unique")
    return [{"columns": [part.strip(" '\"") for part in text.strip("[]").split(",")], "unique": unique == "true"}
            for text, unique in found]


def name_of(name):
    return ".".join(quoted(part) for part in parts_of(name))


def state_of(session, max_rows, max_bytes):
    tables, indexes, size = [], [], 0
    for name, kind in relations(session):
        columns = [{key: column[key] for key in ("name", "type", "notNull", "key")}
                   for column in columns_of(session, name)]
        _names, rows, more = session.query(f"SELECT * FROM {name_of(name)}", max_rows, max_bytes)
        size += sum(len(cell) if cell is not None else 4 for row in rows for cell in row)
        if more or size > max_bytes:
            raise TooLarge(f"the {kind} {name} is larger than can be compared")
        foreign = foreign_keys(session, name) if kind == "table" else []
        tables.append({"name": name, "kind": kind, "columns": columns, "rows": rows, "foreignKeys": foreign})
        if kind == "table":
            indexes.extend({"table": name, **one} for one in indexes_of(session, name))
    return {"tables": tables, "indexes": indexes, "objects": objects_of(session)}


def objects_of(session):
    """Macros by their text: DuckDB has no triggers, and no functions of a script."""
    found = session.rows(
        "SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || function_name || "
        "CAST(parameters AS VARCHAR) || ' AS ' || macro_definition AS m FROM system.main.duckdb_functions() "
        "WHERE NOT internal AND function_type IN ('macro', 'table_macro') ORDER BY m")
    return [{"kind": "macro", "on": "", "text": text} for (text,) in found]


def known_table(session, name):
    for real, _kind in relations(session):
        if real.lower() == name.lower():
            return real
    raise SqlError(f"no such table: {name}")


def op_tables(request):
    with Session(request["db"], "read") as session:
        return {"tables": [
            {"name": name, "kind": kind, "rows": session.rows(f"SELECT count(*) FROM {name_of(name)}")[0][0]}
            for name, kind in relations(session)
        ]}


def op_describe(request):
    with Session(request["db"], "read") as session:
        table = known_table(session, request["table"])
        foreign = [{"from": mine, "table": other, "to": theirs}
                   for mine, other, theirs in foreign_keys(session, table)]
        return {"name": table, "columns": columns_of(session, table), "foreignKeys": foreign,
                "indexes": indexes_of(session, table)}


def op_sample(request):
    with Session(request["db"], "read") as session:
        table = known_table(session, request["table"])
        columns, rows, more = session.query(f"SELECT * FROM {name_of(table)}", request["maxRows"], request["maxBytes"])
        return {"columns": columns, "rows": rows, "more": more, "steps": 0}


def op_build(request):
    """The generator writes a script of SQL, which is run into a new file."""
    script = request["out"] + ".sql"
    generate(request, script)
    load_script(script, request["out"])
    os.unlink(script)
    return {}


def remove(file):
    for path in (file, file + ".wal"):
        if os.path.exists(path):
            os.unlink(path)


def op_subset(request):
    """A neighbour by leaving rows out: some of each table, and whatever points to them, so that keys still hold.

    DuckDB looks at every key of every statement. So what goes is found out first, and then goes leaves first.
    """
    remove(request["out"])
    shutil.copyfile(request["db"], request["out"])
    os.chmod(request["out"], 0o644)
    pick = random.Random(request["seed"])
    with Session(request["out"], "build", 1024) as session:
        tables = [name for name, kind in relations(session) if kind == "table"]
        gone = {name: f'"gone, table {at}"' for at, name in enumerate(tables)}
        for name in tables:
            session.change(f"CREATE TEMP TABLE {gone[name]} (id BIGINT)")
            ids = [row[0] for row in session.rows(f"SELECT rowid FROM {name_of(name)} ORDER BY rowid")]
            listed = ", ".join(f"({one})" for one in ids if pick.random() < request["fraction"])
            if listed:
                session.change(f"INSERT INTO {gone[name]} VALUES {listed}")
        keys = [key for name in tables for key in keys_of(session, name)]
        while sum(session.change(
                f"INSERT INTO {gone[child]} SELECT c.rowid FROM {name_of(child)} c WHERE c.rowid NOT IN (FROM {gone[child]}) "
                f"AND EXISTS (SELECT 1 FROM {name_of(parent)} p WHERE {same} AND p.rowid IN (FROM {gone[parent]}))")
                for child, parent, same in keys) > 0:
            pass
        while sum(session.change(
                f"DELETE FROM {name_of(name)} AS p WHERE p.rowid IN (FROM {gone[name]})" + "".join(
                    f" AND NOT EXISTS (SELECT 1 FROM {name_of(child)} c WHERE {same})"
                    for child, parent, same in keys if parent == name))
                for name in tables) > 0:
            pass
        session.query("CHECKPOINT", 1, 1 << 20)
    return {}


def keys_of(session, child):
    """Of each foreign key of a table: the table, the one it points to, and when a row `c` points to a row `p`."""
    schema, table = parts_of(child)
    found = session.rows(
        "SELECT constraint_index, referenced_table, unnest(constraint_column_names), unnest(referenced_column_names) "
        f"FROM system.main.duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND schema_name = {literal_of(schema)} "
        f"AND table_name = {literal_of(table)}")
    by_key = {}
    for key, parent, mine, theirs in found:
        name = parent if schema == "main" else f"{schema}.{parent}"
        by_key.setdefault((key, name), []).append(f"c.{quoted(mine)} = p.{quoted(theirs)}")
    return [(child, parent, " AND ".join(parts)) for (_key, parent), parts in sorted(by_key.items())]


def load_script(script, out):
    remove(out)
    with open(script, encoding="utf-8") as file, Session(out, "build", 1024) as session:
        with session.statements(file.read()) as (count, extracted):
            for at in range(count):
                session.run(extracted, at, 1, 1 << 20)
        session.query("CHECKPOINT", 1, 1 << 20)


TIMED.append(timed)
PREPARE.append(lambda request: RESERVED)
OPS.update({
    "query": op_query, "script": op_script, "tables": op_tables, "describe": op_describe, "sample": op_sample,
    "build": op_build, "subset": op_subset,
})

"""Tries, as three different users, what the policy grants and what it denies."""

import csv
import json
import os
import re
import stat

SHARE = "/workspace/share"
OWNER, MEMBER, OTHER = (1000, 1000), (2001, 1000), (2002, 2002)
checks = {}


def allowed(who, path, how):
    """Asks the kernel in a child process that has become somebody else."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(who[1])
            os.setuid(who[0])
            os._exit(0 if os.access(path, how) else 1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def rights(who, path):
    return "".join(letter for letter, how in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)) if allowed(who, path, how))


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False


def below(top):
    yield os.path.join(SHARE, top)
    for folder, folders, files in os.walk(os.path.join(SHARE, top)):
        for name in folders + files:
            yield os.path.join(folder, name)


def policy(path):
    """Wanted rights of owner, group and others."""
    parts = os.path.relpath(path, SHARE).split("/")
    folder = os.path.isdir(path)
    if parts == ["."]:
        return "rwx", "rx", "rx"
    if parts[0] == "public":
        return ("rwx", "rx", "rx") if folder else ("rw", "r", "r")
    if parts[0] == "reports":
        return ("rwx", "rx", "") if folder else ("rw", "r", "")
    if parts[0] == "dropbox":
        return ("rwx", "wx", "") if folder else ("rw", "", "")
    if parts[0] == "bin":
        if folder:
            return "rwx", "rx", "rx"
        return ("rwx", "rx", "") if path.endswith(".sh") else ("rw", "r", "r")
    return ("rwx", "", "") if folder else ("rw", "", "")


def holds(top):
    for path in below(top) if top != "." else [SHARE]:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        bits = "".join("rwx"[i % 3] if mode >> (8 - i) & 1 else "-" for i in range(9))
        given = tuple(bits[i : i + 3].replace("-", "") for i in (0, 3, 6))
        if given != policy(path):
            print(f"{path}: has {given}, policy {policy(path)}")
            return False
    return True


FILES = {
    "public": ["index.html", "img/logo.svg", "img/old ones/- first.svg", "naïve note.txt"],
    "reports": ["summary.txt", "2025/q4/board.txt", "2025/-rf"],
    "dropbox": ["incoming.bin", " spaced.bin"],
    "bin": ["rotate.sh", "README", "notes.sh.txt"],
    "private": ["keys/host.key", "keys/deploy.key", ".netrc"],
}


def kept(top):
    for name in FILES[top]:
        with open(f"{SHARE}/{top}/{name}") as file:
            if file.read() != f"content of {top}/{name}\n":
                return False
    return True


for top in FILES:
    check(top, lambda top=top: kept(top) and holds(top))
check("share_itself", lambda: holds("."))
# The same once more as people would notice it.
check("people_get_in", lambda: (
    rights(OTHER, f"{SHARE}/public/img/old ones/- first.svg") == "r"
    and rights(MEMBER, f"{SHARE}/reports/2025/q4/board.txt") == "r"
    and rights(MEMBER, f"{SHARE}/bin/backup.sh") == "rx"
    and rights(MEMBER, f"{SHARE}/dropbox") == "wx"
    and rights(OWNER, f"{SHARE}/private/keys/deploy.key") == "rw"
))
check("people_are_kept_out", lambda: (
    rights(OTHER, f"{SHARE}/reports/summary.txt") == ""
    and rights(OTHER, f"{SHARE}/bin/backup.sh") == ""
    and rights(MEMBER, f"{SHARE}/private/accounts.csv") == ""
    and rights(MEMBER, f"{SHARE}/dropbox/incoming.bin") == ""
    and rights(MEMBER, f"{SHARE}/public/index.html") == "r"
))


def passwd():
    wanted, seen, uid = [], set(), 3000
    with open(f"{SHARE}/private/accounts.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if len(rows) != 9 or rows[8]["full_name"] != "Öberg, Finn":
        return False
    for row in rows:
        if not re.fullmatch("[a-z][a-z0-9]{0,15}", row["login"]) or row["login"] in seen:
            continue
        seen.add(row["login"])
        gid = {"ops": 5000, "sales": 5001}.get(row["team"], 5002)
        shell = "/bin/bash" if row["state"] == "active" else "/usr/sbin/nologin"
        name = row["full_name"].replace(":", " ")
        wanted.append(f"{row['login']}:x:{uid}:{gid}:{name}:/home/{row['login']}:{shell}\n")
        uid += 1
    with open(f"{SHARE}/private/passwd", encoding="utf-8", newline="") as file:
        given = file.read()
    return given == "".join(wanted)


check("passwd", passwd)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)

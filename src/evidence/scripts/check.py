# Checks the proofs in a case of crawlgate, and judges each request again by the robots.txt parser of Python.
# check.sh runs this, after it has checked the hashes and signatures. It prints a line for each robots.txt that was
# served, and for each request in the time of the case. Python's parser may take the first rule that matches, and may not
# know * and $ in a path. RFC 9309 takes the longest rule, and joins the groups of a crawler.
import base64, datetime, glob, hashlib, ipaddress, json, re, subprocess, tempfile, urllib.robotparser

def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()

def leads_to(leaf, place, size, path):
    if size == 1:
        return leaf
    half = 1 << (size - 1).bit_length() - 1
    if place < half:
        left, right = leads_to(leaf, place, half, path[:-1]), path[-1]
    else:
        left, right = path[-1], leads_to(leaf, place - half, size - half, path[:-1])
    return hashlib.sha256(b"\1" + left + right).digest()

for name in glob.glob("checkpoints/*.json"):
    signed = open(name.replace(".json", ".note")).read().split("\n")
    for proof in json.load(open(name)):
        assert sorted(proof) == ["chain", "entries", "head", "path", "place"], name
        head = {key: proof[key] for key in ("chain", "entries", "head")}
        leaf = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        path = [bytes.fromhex(step) for step in proof["path"]]
        root = leads_to(hashlib.sha256(b"\0" + leaf).digest(), proof["place"], int(signed[1]), path)
        assert root == base64.b64decode(signed[2]), name

# The last checkpoint covers each chain to its last entry, and the chain is the one that its name says.
about = json.load(open("case.json"))
last_heads = json.load(open(max(glob.glob("checkpoints/*.json"))))
sites = {"crawler": about["site"], "site": about["site"], "log": ""}
for name, site in sites.items():
    *whole, rest = open(f"chains/{name}.jsonl").read().split("\n")
    assert rest == "", name + " does not end with a line"
    entries = [json.loads(line) for line in whole]
    crawler = about["crawler"] if name == "crawler" else ""
    for place, entry in enumerate(entries):
        assert entry["chain"] == {"crawler": crawler, "site": site}, name + " is another chain"
        assert entry["number"] == entries[0]["number"] + place, name + " has a gap"
    heads = [(proof["entries"] - 1, proof["head"]) for proof in last_heads if proof["chain"] == {"crawler": crawler, "site": site}]
    assert heads == ([(entries[-1]["number"], sha256(whole[-1]))] if entries else []), name + " was shortened or written anew"

# A chain begins with its first entry, or with one from before the time of the case, unless the log deleted what is too old.
for name, days in ("crawler", 0), ("site", 32), ("log", 32):
    begin = datetime.datetime.fromisoformat(about["from"][:19]) - datetime.timedelta(days=days)
    first = json.loads(open(f"chains/{name}.jsonl").readline() or '{"number": 0}')
    if name == "log" and first["number"] == 0 and "time" in first:
        assert about["from"] >= first["time"], "case.json says that the case begins before the log"
    if first["number"] > 0 and first["time"] >= begin.isoformat():
        deleted = [gap["data"]["before"] for gap in map(json.loads, open("chains/log.jsonl")) if "too_old" in str(gap["data"])]
        assert deleted, name + " was shortened at its beginning"
        print(f"chains/{name}.jsonl begins at {first['time']}: the log says that it deleted older entries, up to {max(deleted)}")

values = {}
for line in open("personal.jsonl"):
    value = json.loads(line)
    digest = hashlib.sha256(bytes.fromhex(value["salt"]) + value["value"].encode()).hexdigest()
    values[digest] = value["value"]

def value_of(entry, name):
    return values.get(entry["personal"].get(name))

def is_signed(key, signature, text):
    def decoded(text):
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    with tempfile.TemporaryDirectory() as place:
        for name, content in {
            "key": bytes.fromhex("302a300506032b6570032100") + decoded(key),
            "signature": decoded(signature),
            "text": text.encode(),
        }.items():
            open(f"{place}/{name}", "wb").write(content)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature"
        return subprocess.run(command.split(), cwd=place, capture_output=True).returncode == 0

# What a proof rests on. What is not in the case is the site's word.
def check_proof(entry):
    data, says = entry["data"], []
    address, is_signature = value_of(entry, "client"), data["means"] == "signature"
    for named in data.get("lists", []):
        content = open("lists/" + named["sha256"], "rb").read()
        assert hashlib.sha256(content).hexdigest() == named["sha256"]
        copies = {"directory": "from a file that the site supplied, dated", "mirror": "from a mirror that the site chose, checked"}
        copy = copies.get(named.get("obtained"), "as the site kept it, checked")
        kept = f"{named['source']}, {copy} {named.get('checked', '?')}"
        if is_signature:
            assert data["key"].encode() in content, "the key is not in the directory"
            says.append("the key is in " + kept)
        elif address and data.get("address") == "whole":
            networks = []
            for word in re.findall(r"[0-9a-fA-F:.]+(?:/[0-9]+)?", content.decode()):
                try:
                    networks.append(ipaddress.ip_network(word))
                except ValueError:
                    pass
            inside = [str(network) for network in networks if ipaddress.ip_address(address) in network]
            assert bool(inside) == (data["identity"] == "verified"), "the list contradicts the proof"
            where = "in " + ", ".join(inside) + " of" if inside else "outside"
            says.append(f"{address} is {where} {kept}")
    text = value_of(entry, "signature_base")
    if is_signature and text:
        assert is_signed(data["key"], data["signature"], text), "the signature does not match"
        says.append("the signature is good")
    elif is_signature or not address or data.get("address") != "whole":
        says.append("not checked, because the address or the signed text is not in the case: only the site says so")
    if "dns" in data:
        says.append("the site says that reverse DNS gave " + (value_of(entry, "name") or "a name that is not in the case, or none"))
    return data["identity"] + " by " + data["means"] + ": " + "; ".join(says)

KINDS = {
    "not_bound": "may be no violation: robots.txt does not bind this crawler",
    "unproven": "may be no violation: the client or a cache may have used an older robots.txt",
    "stale_copy": "may be no violation: the client may have used an older robots.txt",
    "ambiguous": "may be no violation: the path can be read in two ways, and robots.txt allows one",
    "impostor": "the client only pretended to be the crawler",
    "trapped": "the client requested a trap",
    "unverified": "the client is not verified",
    "too_fast": "too fast",
}
chain = [line.rstrip("\n") for line in open("chains/crawler.jsonl")]
proofs = {}
for line in [line.rstrip("\n") for line in open("proofs.jsonl")] + chain:
    entry = json.loads(line)
    if entry["kind"] == "proof":
        proofs[sha256(line)] = check_proof(entry)

print("Below, Python's own parser reads each robots.txt. It may take the first rule that matches and the first group, and may not know")
print("* and $ in a path. RFC 9309 and crawlgate take the longest rule of all groups of the crawler.")
for entry in map(json.loads, chain):
    data = entry["data"]
    if entry["kind"] == "served":
        own_copy = ", its If-None-Match was " + data["if_none_match"] if "if_none_match" in data else ""
        print(data["arrived"], data["identity"], "client was sent robots.txt", data["sha256"] + ", status", str(data["status"]) + own_copy)
    # Entries before and after the time of the case only show that none is missing.
    if entry["kind"] != "request" or not about["from"] <= entry["time"] < about["to"]:
        continue
    named = data.get("proof_entry")
    target, crawler = value_of(entry, "target"), entry["chain"]["crawler"]
    is_disallowed = data.get("verdict") == "disallowed"
    passed = data["kind"] in ("allowed", "not_bound") and not is_disallowed
    kind = "not disallowed by robots.txt" if passed else KINDS.get(data["kind"], data["kind"])
    reason = ""
    if data.get("history") == "declared" and is_disallowed:
        reason = " only the site says which robots.txt it had before crawlgate,"
    if "license" in (data.get("action"), data.get("would")) and not is_disallowed:
        reason = " without a licence,"
    if "license_token" in data:
        reason += " with a licence token,"
    if "reserved" in data:
        reason += " to a page with a published reservation (TDM, Content-Signal or Content-Usage),"
    print(data["arrived"], crawler + ":", kind + "," + reason, data.get("rule", "no rule") + ", status", data["status"] or "not known")
    print(data["arrived"], "identity:", proofs.get(named["sha256"], "the proof is older than the log") if named else data["identity"] + ", no proof")
    for version in [data["sha256"], *data["cached_sha256"]]:
        robots = open(f"robots/{version}.txt", "rb").read()
        assert hashlib.sha256(robots).hexdigest() == version
        parser = urllib.robotparser.RobotFileParser()
        parser.parse(robots.decode("utf-8", "replace").splitlines())
        if target is None or len(target.encode()) >= 2048:
            print(data["arrived"], "the target was", "cut off" if target else "deleted", "and is not judged by", version)
            continue
        # The groups of the first token that has one bind the crawler, else the group * if the log says that it does.
        groups = {token: [group for group in parser.entries if token.lower() in map(str.lower, group.useragents)] for token in data["tokens"]}
        token = next((token for token in groups if groups[token]), "*")
        if token == "*" and data.get("binds") not in ("star", "unknown"):
            verdict = "not bound"
        else:
            parser.entries = groups.get(token, [])
            verdict = "allowed" if parser.can_fetch(token, target) else "disallowed"
        print(data["arrived"], target, verdict, "by", version)

#!/bin/sh
# Checks a case of crawlgate without crawlgate: hashes, signatures and timestamps here, proofs and requests in check.py.
# It needs sha256sum, openssl 3 and Python. It prints what it checks, and stops with status 1 at the first fault.
#
#   mkdir case && tar -xf case.tar -C case && cd case
#   sh check.sh KEY [CERTIFICATE]
#
# A case of several logs has a directory for each of them: logs/1, logs/2 and so on. Run this in each one, with its key.
# KEY is a public key of the log, or a file with it. Get it from the site, and not from the case.
# CERTIFICATE is the certificate of the authority that made the timestamps. Get it from the authority.
# If the certificate has expired, add the day of the timestamp: sh check.sh KEY CERTIFICATE 2026-12-01
#
# Whoever made the case could have changed this script. The originals are in share/evidence of a released archive of
# crawlgate, and in src/evidence/scripts of its source: compare them with those of the same version.
# It runs from any place, as long as check.py is beside it.
set -u
KEY=${1:-} certificate=${2:-} day=${3:-}
[ ! -f "$KEY" ] || KEY=$(cat "$KEY")
[ -n "$KEY" ] && [ -f manifest.txt ] || { echo "usage, where the case is unpacked: sh check.sh KEY [CERTIFICATE [DAY]]"; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1"; exit 1; }

# A key as openssl reads it.
pem() {
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; printf %s "$1" | cut -d+ -f3- | base64 -d | tail -c 32; } |
    openssl pkey -pubin -inform DER
}
# Whether a key signed a note: the text before the blank line, and the last 64 bytes of a signature.
signed() {
  sed '/^$/,$d' "$1" > "$work/text"
  pem "$2" > "$work/key" 2> /dev/null
  sed -n 's/^— [^ ]* //p' "$1" | while read -r signature; do
    printf %s "$signature" | base64 -d | tail -c 64 > "$work/signature"
    openssl pkeyutl -verify -pubin -inkey "$work/key" -rawin -in "$work/text" -sigfile "$work/signature"
  done 2>&1 | grep -q Successfully
}

# The keys of the log: the old and the new one signed each change. One of them is KEY.
first=$KEY last=
for note in keys/*.note; do
  [ -e "$note" ] || continue
  old=$(sed -n 's/^old //p' "$note") new=$(sed -n 's/^new //p' "$note")
  [ -n "$last" ] || first=$old
  [ "$old" = "${last:-$first}" ] && signed "$note" "$old" && signed "$note" "$new" ||
    fail "$note: the old and the new key did not both sign it"
  last=$new
done
cat keys/*.note 2>/dev/null | sed -n 's/^new //p' | { echo "$first"; cat; } | grep -qxF "$KEY" ||
  fail "KEY is not a key of this log"

# The key that signs a checkpoint.
key_of() {
  key=$first
  for note in keys/*.note; do
    [ -e "$note" ] && [ "$(sed -n 's/^from //p' "$note")" -le "$1" ] && key=$(sed -n 's/^new //p' "$note")
  done
  echo "$key"
}

# Each checkpoint is signed by the key of its time, and names the checkpoint before it.
before=
for note in checkpoints/*.note; do
  signed "$note" "$(key_of "$(sed -n 's/^number //p' "$note")")" || fail "$note: the key did not sign it"
  grep -q "^previous $before" "$note" || fail "$note does not follow the checkpoint before it"
  before=$(sha256sum < "$note" | cut -c 1-64)
done

# The manifest is signed. Every file is the one that it names, and there is no other file.
signed manifest.txt "${last:-$KEY}" || fail "manifest.txt: the key did not sign it"
sed '/^$/,$d' manifest.txt > "$work/files"
sha256sum --check --quiet --strict "$work/files" || fail "a file is not the one that manifest.txt names"
find . ! -type d ! -path ./manifest.txt | while IFS= read -r file; do
  cut -c 67- "$work/files" | grep -qxF "${file#./}" || echo "$file"
done > "$work/others"
[ ! -s "$work/others" ] || fail "manifest.txt does not name these files: $(cat "$work/others")"

# Each entry has the hash of the entry before it, and the last one is the head in the last checkpoint.
for chain in chains/*.jsonl; do
  # One log of several may have nothing of the crawler; check.py compares the heads.
  [ -s "$chain" ] || continue
  before=
  while IFS= read -r entry; do
    case $entry in *"\"previous\":\"$before"*) ;; *) fail "$chain: an entry was changed or removed" ;; esac
    before=$(printf %s "$entry" | sha256sum | cut -c 1-64)
  done < "$chain"
  grep -q "\"head\":\"$before\"" "$(ls checkpoints/*.json | tail -n 1)" || fail "$chain was shortened"
done
echo "Passed: every hash and every signature. KEY is a key of the log."

# Who signed a timestamp, by the certificates in it.
authority() {
  openssl ts -reply -in "$1" -token_out 2> /dev/null | openssl pkcs7 -inform DER -print_certs -noout | grep subject
}
# What the authority says about the time of checkpoints.
for stamp in timestamps/*.tsr; do
  [ -e "$stamp" ] || { echo "Not known: no authority confirms the times. They are the site's word."; break; }
  who=$(authority "$stamp") || fail "$stamp: no timestamp can be read"
  [ -n "$certificate" ] || { echo "Not checked: $stamp, without the certificate of its authority: $who"; continue; }
  note=checkpoints/$(basename "$stamp" | cut -c 1-6).note
  openssl ts -verify -data "$note" -in "$stamp" -CAfile "$certificate" ${day:+-attime "$(date -d "$day" +%s)"} \
    > "$work/openssl" 2>&1 || fail "$stamp: $(cat "$work/openssl")"
  echo "Passed: $stamp. Nothing that $note covers ($(grep '^time' "$note")) was changed after this time:"
  openssl ts -reply -in "$stamp" -text 2> /dev/null | grep "Time stamp"
  echo "The site chose this authority. Decide whether you trust it:"
  echo "$who"
done

python3 -I -X utf8 "$(dirname "$0")/check.py" || fail "the proofs or the requests, as printed above"
echo "Not known: whether report.html says what the entries say. Only \"crawlgate evidence verify\" compares it."
echo "Not known: which requests had a valid licence token. Any token, also a forged one, counts as a licence."
echo "Passed: all proofs that could be checked. The lines above name the others, and say how each request was judged."

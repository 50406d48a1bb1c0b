#!/usr/bin/env bash
# Writes one file of another machine's archive below COLLECT_TARGET. tar runs it for each plain file
# (copy.sh), with the content on standard input. The file is NAME.part until every byte of it is there.
set -euo pipefail

name=${TAR_FILENAME#./}
case /$name/ in
  *//* | */./* | */../*)
    printf 'the archive names %q, which is no file below the folder: not unpacked\n' "$TAR_FILENAME" >&2
    exit 1
    ;;
esac
file=$COLLECT_TARGET/$name
if [ -e "$file" ] || [ -e "$file.part" ]; then
  printf 'the archive names %q, which is there already: not unpacked\n' "$TAR_FILENAME" >&2
  exit 1
fi
mkdir -p "${file%/*}"
cat >"$file.part"
size=$(stat -c %s "$file.part")
if [ "$size" -ne "$TAR_SIZE" ]; then
  printf '%q ends after %s of %s bytes\n' "$TAR_FILENAME" "$size" "$TAR_SIZE" >&2
  exit 1
fi
touch -d "@$TAR_MTIME" "$file.part" || true
mv "$file.part" "$file"

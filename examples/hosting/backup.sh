#!/bin/sh
# Backs the SQLite database of OUTREACH_DATABASE_URL up, checks the copy, and keeps the newest KEEP backups.
#
#     backup.sh DIRECTORY [KEEP]
#
# DIRECTORY is an absolute path, KEEP is 14 by default. A run that fails removes no backup and ends with a status that
# is not 0. docs/backups.md says what else to keep. From cron, as the user outreach:
#
#     17 * * * *  OUTREACH_DATABASE_URL=sqlite:////var/lib/outreach/outreach.db PATH=/opt/outreach:/usr/bin:/bin /opt/outreach/backup.sh /var/backups/outreach 48 >/dev/null
set -eu
directory=${1:?name the directory of the backups}
keep=${2:-14}
case $directory in /*) ;; *) echo "$directory is no absolute path" >&2; exit 2 ;; esac
case $keep in *[!0-9]* | 0*) echo "KEEP is $keep; it must be a whole number from 1" >&2; exit 2 ;; esac

file=$directory/outreach-$(date -u +%Y-%m-%dT%H-%M-%SZ).db
outreach-server db backup "$file"
outreach-server --database "sqlite:///$file" db check

# Left by a backup that was killed.
find "$directory" -name 'outreach-????-??-??T??-??-??Z.db.*.part*' -mtime +0 -exec rm -- {} +

# The names sort by time. Other files of the directory stay.
count=0
for old in "$directory"/outreach-????-??-??T??-??-??Z.db; do count=$((count + 1)); done
for old in "$directory"/outreach-????-??-??T??-??-??Z.db; do
    [ "$count" -gt "$keep" ] || break
    rm -- "$old"
    count=$((count - 1))
done

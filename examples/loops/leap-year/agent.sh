#!/bin/sh
# Stands in for a coding agent: reads the prompt on stdin, mends one thing that the judges
# found in the version shown, prints the whole new version.
prompt=$(cat)
version=$(printf '%s\n' "$prompt" | awk '/^```/ { if (inside) exit; inside = 1; next } inside')

if [ -z "$version" ]; then
    # The first draft.
    cat <<'DRAFT'
#!/bin/sh
if [ $(($1 % 4)) -eq 0 ]; then echo leap; else echo common; fi
DRAFT
    exit
fi

case $prompt in
*"not a full century"*)
    printf '%s\n' "$version" |
        sed 's/^if \[ $(($1 % 4)) -eq 0 \]/if [ $(($1 % 4)) -eq 0 ] \&\& [ $(($1 % 100)) -ne 0 ]/'
    ;;
*"but every fourth one"*)
    printf '%s\n' "$version" |
        sed 's/^if \(.*\); then echo leap/if { \1; } || [ $(($1 % 400)) -eq 0 ]; then echo leap/'
    ;;
*"usage"*"failed"*)
    printf '%s\n' "$version" |
        sed '1a\
[ $# -eq 1 ] || { echo "usage: leap.sh YEAR" >\&2; exit 2; }'
    ;;
*)
    printf '%s\n' "$version" | sed '1a\
# Says whether a year of the Gregorian calendar is a leap year.'
    ;;
esac

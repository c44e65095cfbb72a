#!/bin/sh
# check.sh SCRIPT YEAR EXPECTED: runs the script, and compares what it prints. Without a year
# the usage and the exit code are looked at.
if [ -z "$2" ]; then
    said=$(sh "$1" 2>&1)
    code=$?
    case $said in
    *usage*) got="usage, exit code $code" ;;
    *) got="no usage, exit code $code" ;;
    esac
else
    got=$(sh "$1" "$2" 2>&1)
fi
[ "$got" = "$3" ] && exit 0
echo "expected \`$3\` for the argument \`$2\`, found \`$got\`"
exit 1

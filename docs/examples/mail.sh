#!/bin/sh
# Sends a mail. Run it with: sluice work mail -- sh mail.sh
payload=$(cat)
case $payload in
*nobody*)
	echo "there is no such user" >&2
	exit 65 # dead at once
	;;
*busy*)
	if [ "$SLUICE_ATTEMPT" = 1 ]; then
		echo '{"error": "451 try again", "retry_after": "1s"}'
		exit 1 # tried again when the answer says
	fi
	;;
esac
echo '{"sent": 1}'

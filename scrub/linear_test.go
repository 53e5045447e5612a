package scrub_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/scrub"
)

// hostile are texts that make rules begin again and again if the text is repeated.
func hostile() []string {
	all := []string{
		"fe80::1 ", "fe80::1", "password=", "password = ", "a:a:a:", "1:1:1:", "<password>", `"`, "'", `\`, "`", `\"`, `password="`, `password='`, `password=\"`, `token="password='`,
		"x@", "@", "a.a@a.a", "x@a.", "://", "a://a:", "a://a:b@", "u:p@tcp(", "eyJ", "eyJaaaa.", "eyJ-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN X-----", "PuTTY-User-Key-File", "ssh-rsa AAAA",
		"AKIA", "aws ", "aws/", "ghp_", "sk-", "sk-a1", "SG.", "1", "1 ", "1-", "4111 ", "4111 1111 1111 1111 ", "+1", "(", "+1(", "((1)", "DE89 ", "DE893704", "Cookie: ", "Cookie: a=", "Authorization: ", "bearer ",
		"?key=", "&sig=", "&code=a", "-u a:", "--token ", "IDENTIFIED BY '", "identified ", "/home/", `\Users\`, "ssn ", "[redacted:", "[redacted:email]", "[redacted:email]a@b.cd", "hooks.slack.com/", "123456:AA",
		"sentry=", "facebook ", "sourcegraph ", "twilio SK", "a=,", "password=a,", "password=a;b", "password,value=", "\xff", "é", "\x00", "%20", `\u003c`, "password\\", "signature=", "session_id=a1B2", "token=a1b2c3,",
	}
	return append(all, strings.Join(scrub.Words(), " ")+" ", strings.Join(scrub.Words(), "="), strings.Join(all, ""))
}

// TestWorkGrowsWithTheText counts the bytes that rules read. A text 8 times as long may cost about 8 times the work.
// The exact factor depends on the end of the text.
func TestWorkGrowsWithTheText(t *testing.T) {
	t.Parallel()
	const size, times = 16 << 10, 8
	for _, seed := range hostile() {
		text := strings.Repeat(seed, times*size/len(seed)+1)
		part, whole := scrub.Work(text[:size]), scrub.Work(text[:times*size])
		if whole > 3*times*part {
			t.Errorf("%.40q: %d bytes are read in a text of %d, and %d in one of %d", seed, part, size, whole, times*size)
		}
		if most := 64 * times * size; whole > most {
			t.Errorf("%.40q: %d bytes are read in a text of %d", seed, whole, times*size)
		}
	}
}

// TestPlainLogIsReadOnce counts the bytes that rules read of a plain log. One pass looks for the words of rules. Beyond
// the pass, rules read 0.2 % of the log today. At 10 %, a common word leads to a rule, or rules read on for long.
func TestPlainLogIsReadOnce(t *testing.T) {
	t.Parallel()
	log := plainLog()
	if work, most := scrub.Work(log), len(log)+len(log)/10; work > most {
		t.Errorf("%d bytes are read in a plain log of %d, more than %d", work, len(log), most)
	}
}

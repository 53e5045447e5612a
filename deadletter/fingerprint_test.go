package deadletter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

func TestFailuresAreClassedAndNormalised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, class, message string }{
		{"", "unknown", ""},
		{"no route to bank", "error", "no route to bank"},
		{`Post "https://bank.example/v1/accounts/4711/payments?key=x": dial tcp 10.0.3.17:443: connect: connection refused`, "error", `Post "https://bank.example/v<n>/accounts/<n>/payments": dial tcp <address>: connect: connection refused`},
		{"exit status 1: account 4711 closed", "exit 1", "account <n> closed"},
		{"exit status 137", "exit 137", ""},
		{"signal: killed", "error", "signal: killed"},
		{"TimeoutError: no answer after 30.5s from host-17", "TimeoutError", "no answer after <duration> from host-<n>"},
		{"psycopg2.errors.UniqueViolation: duplicate key value violates unique constraint \"pay_key\"\nDETAIL:  Key (id)=(42) already exists.", "psycopg2.errors.UniqueViolation", "duplicate key value violates unique constraint <text> DETAIL: Key (id)=(<n>) already exists."},
		{"ERROR: deadlock detected (SQLSTATE 40P01)", "error", "ERROR: deadlock detected (SQLSTATE <n>P<n>)"},
		{"java.sql.SQLException: Lock wait timeout exceeded; try restarting transaction", "java.sql.SQLException", "Lock wait timeout exceeded; try restarting transaction"},
		{"panic: runtime error: index out of range [5] with length 3", "panic", "runtime error: index out of range [<n>] with length <n>"},
		{"panic: runtime error: invalid memory address or nil pointer dereference", "panic", "runtime error: invalid memory address or nil pointer dereference"},
		{"attempt timed out after 15m0s: context deadline exceeded", "timeout", "<duration>: context deadline exceeded"},
		{storing.PoisonError(5), "poison", "<n> holders were lost while they ran it"},
		{"the run failed: bank said no", "run failed", "bank said no"},
		{"the run timed out: timed out: the run took longer than its timeout", "run timed out", "timed out: the run took longer than its timeout"},
		{"the run terminated: terminated by ada@host: too old", "run failed", "terminated by ada@host: too old"},
		{storing.ResolvedError(sluice.Act{By: "ada", Reason: "the bank has no payment 17"}), "resolved", "the bank has no payment <n>"},
		{"start \"pay-17\": refused by the engine: blob of 3000000 bytes is too large", "refused", "start <text>: refused by the engine: blob of <n> bytes is too large"},
		{"the ref is taken by another run: pay-17", "refused", "the ref is taken by another run: pay-<n>"},
		{"invalid payload: it does not fit main.payment: json: cannot unmarshal string into Go struct field payment.cents of type int64", "payload", "it does not fit main.payment: json: cannot unmarshal string into Go struct field payment.cents of type int<n>"},
		{"permanent: account closed", "permanent", "account closed"},
		{"job 01a1fb72-1dea-7abc-8fc6-99e4817522bb of cus_9s6XKzkNRiz8i3 not found", "error", "job <id> of cus_<id> not found"},
		{"commit 9f86d081884c7d65 at 0xc000123ff0 in main.go:123:45", "error", "commit <id> at <id> in main.go:<n>:<n>"},
		{"no host fe80::1ff:fe23:4567:890a, mail ada@example.com bounced at 2026-11-21T15:54:45.123+02:00 (21/11/2026 15:54:45)", "error", "no host <address>, mail <address> bounced at <time> (<time> <time>)"},
		{"can't find user 'ada' or «bob» or `carl`, it's over", "error", "can't find user <text> or <text> or <text>, it's over"},
		{`{"code": 402, "message":"Insufficient funds: 17.50 EUR", "request":"req_8K2"}`, "error", `{"code": <n>, "message":"Insufficient funds: <n> EUR", "request":<text>}`},
		{"balance 1,234.50 below -20 %, 12 of 1.000.000 tried", "error", "balance <n> below -<n> %, <n> of <n> tried"},
		{"pod payments-7d9f8b6c5d-x2x7k: OOMKilled", "error", "pod payments-<id>-<id>: OOMKilled"},
		{"Traceback (most recent call last):\n  File \"/app/pay.py\", line 12, in pay\nKeyError: 'iban'", "error", "Traceback (most recent call last): File <text>, line <n>, in pay KeyError: <text>"},
		{"zahlung 17 über größe 3€ ungültig", "error", "zahlung <n> über größe <n>€ ungültig"},
		{"an unclosed \"quote 5", "error", "an unclosed \"quote <n>"},
		{"postgres://sluice:secret@db-2.internal:5432/jobs: too many connections", "error", "postgres://db-<n>.internal:<n>/jobs: too many connections"},
	} {
		class, message := Classify(c.text)
		if class != c.class || message != c.message {
			t.Errorf("%q\n got %q: %q\nwant %q: %q", c.text, class, message, c.class, c.message)
		}
		if again := normalise(message); again != message {
			t.Errorf("%q becomes %q when it is normalised again", message, again)
		}
	}
}

func TestFingerprintsTellCausesApart(t *testing.T) {
	t.Parallel()
	one := Fingerprint("payments", "account 1 closed")
	if len(one) != 8 || strings.Trim(one, "0123456789abcdef") != "" {
		t.Errorf("%q is not eight hexadecimal digits", one)
	}
	if other := Fingerprint("payments", "account 2 closed"); other != one {
		t.Errorf("the same cause has %s and %s", one, other)
	}
	for _, other := range []string{
		Fingerprint("refunds", "account 1 closed"),
		Fingerprint("payments", "account 1 is closed"),
		Fingerprint("payments", "panic: account 1 closed"),
	} {
		if other == one {
			t.Errorf("another cause has %s, too", one)
		}
	}
}

func TestAGroupCountsDeathsByHour(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var jobs []sluice.Job
	for _, ago := range []time.Duration{-time.Second, 0, 59 * time.Minute, time.Hour, 24*time.Hour - time.Second, 24 * time.Hour} {
		jobs = append(jobs, sluice.Job{Queue: "mail", Error: "no answer", FinishedAt: now.Add(-ago)})
	}
	groups := make(map[string]*Group)
	addToGroups(groups, jobs, now)
	want := make([]int, Hours)
	want[0], want[Hours-2], want[Hours-1] = 1, 1, 3
	if got := groups[Fingerprint("mail", "no answer")]; got.Count != len(jobs) || !slices.Equal(got.Hours, want) {
		t.Errorf("%d deaths, by hour %v, want %v", got.Count, got.Hours, want)
	}
}

func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		"", "a1b2 'x' \"y\" https://h/1?q", "“a” «b» `c`", `{"message":"x 1","id":"y"}`, "1,2,3.4.5 12:00:01 0x1f", "'a'1'b'", "\xff\xfe«", "::1 1.2.3.4:5",
		"http://'a'http://1", "\\\"a\"b\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := normalise(text)
		if twice := normalise(once); twice != once {
			t.Errorf("%q becomes %q, and that %q", text, once, twice)
		}
		Fingerprint("q", text)
	})
}

func BenchmarkFingerprint(b *testing.B) {
	for b.Loop() {
		Fingerprint("payments", `Post "https://bank.example/v1/accounts/4711/payments?key=x": dial tcp 10.0.3.17:443: connect: connection refused`)
	}
}

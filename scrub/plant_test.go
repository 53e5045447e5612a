package scrub_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/scrub"
)

var plantSeed = flag.Uint64("plant-seed", 0, "the seed of the planted secrets; 0: another one each time")

// planted makes one secret of each kind, in the form in which vendors issue them.
func planted(r *rand.Rand) map[string]string {
	const lower, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	of := func(letters string, n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		return string(text)
	}
	all := lower + upper + digits
	key := func(n int) string { return of(all, n-4) + of(digits, 2) + of(upper, 2) } // keys have letters of both cases and digits
	top := "q" + of(lower, 1+r.IntN(3))                                              // no file name ends like this: `client@v2.ts` is not an address
	return map[string]string{
		"email":       of(lower, 1) + of(lower+digits+"._-", r.IntN(12)) + of(lower, 1) + "@" + of(lower, 3+r.IntN(9)) + "." + top,
		"phone":       fmt.Sprintf("+%d %d %d", 1+r.IntN(98), 100+r.IntN(899), 100000+r.IntN(8999999)),
		"us phone":    fmt.Sprintf("(%d) %d-%04d", 200+r.IntN(799), 200+r.IntN(799), r.IntN(10000)),
		"ip":          fmt.Sprintf("%d.%d.%d.%d", 1+r.IntN(126), 100+r.IntN(156), r.IntN(256), r.IntN(256)),
		"ipv6":        fmt.Sprintf("2001:db8:%x::%x:%x", 1+r.IntN(65535), r.IntN(65536), r.IntN(65536)),
		"home":        "/home/" + of(lower, 5+r.IntN(8)) + "x/file",
		"openai":      "sk-proj-" + key(48),
		"anthropic":   "sk-ant-api03-" + key(93) + "AA",
		"slack":       fmt.Sprintf("xoxb-%s-%s-%s", of(digits, 12), of(digits, 12), key(24)),
		"stripe":      "sk_live_" + key(24),
		"aws":         "AKIA" + of(upper+"234567", 16),
		"aws secret":  "aws_secret_access_key=" + key(40),
		"github":      "ghp_" + key(36),
		"fine github": "github_pat_" + key(22) + "_" + key(59),
		"jwt":         "eyJ" + key(20) + "." + "eyJ" + key(40) + "." + key(43),
		"ssh":         "-----BEGIN OPENSSH PRIVATE KEY-----\n" + key(70) + "\n" + key(70) + "\n-----END OPENSSH PRIVATE KEY-----",
		"card":        card(r),
		"ssn":         fmt.Sprintf("%03d-%02d-%04d", 100+r.IntN(500), 1+r.IntN(99), 1+r.IntN(9999)),
		"password":    "password: " + of(lower, 3) + of(digits, 3) + of("!%&_", 1) + of(upper, 2),
		"url":         "postgres://app:" + key(12) + "@db.internal/app",
		"bearer":      "Authorization: Bearer " + key(30),
	}
}

// card makes a card number that Luhn's check accepts.
func card(r *rand.Rand) string {
	number := []byte("4" + fmt.Sprintf("%014d", r.Int64N(1e14)))
	sum := 0
	for i, c := range number {
		d := int(c - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	number = append(number, byte('0'+(10-sum%10)%10))
	if r.IntN(2) == 0 {
		return string(number)
	}
	return fmt.Sprintf("%s %s %s %s", number[:4], number[4:8], number[8:12], number[12:])
}

// core returns the part of a planted secret that must not be left.
func core(secret string) string {
	for _, prefix := range []string{"/home/", "aws_secret_access_key=", "password: ", "postgres://app:", "Authorization: Bearer "} {
		secret = strings.TrimPrefix(secret, prefix)
	}
	secret, _, _ = strings.Cut(secret, "@db.internal")
	return strings.TrimSuffix(secret, "x/file")
}

// mustNotSurvive puts one secret between two texts. The seed chooses the kind of the secret.
func mustNotSurvive(t *testing.T, before, after string, seed uint64) {
	t.Helper()
	all := planted(rand.New(rand.NewPCG(seed, 5)))
	kinds := slices.Sorted(maps.Keys(all))
	kind := kinds[seed%uint64(len(kinds))]
	hidden := core(all[kind])
	if strings.Contains(before, hidden) || strings.Contains(after, hidden) {
		return // the texts contain the secret by chance, perhaps in a form that means something else
	}
	clean := scrub.Text(before + "\n" + all[kind] + "\n" + after)
	if strings.Contains(clean, hidden) {
		t.Errorf("seed %d: the %s %q survived between %q and %q:\n%q", seed, kind, hidden, before, after, clean)
	}
	if again := scrub.Text(clean); again != clean {
		t.Errorf("seed %d: %q was scrubbed again to %q", seed, clean, again)
	}
}

func FuzzNoPlantedSecretSurvives(f *testing.F) {
	for i, before := range []string{
		"", "please fix this: ", "415 555", "password=", "{\"token\": \"", "https://u:p@", "-----BEGIN", "eyJ", "sk-", "/home/", "[redacted:", "1.2.3.", "x@",
		"Authorization: ", "curl -u ", "aws ", "+1", "é", "\xff\xfe", "akia", "xoxb-1-2-", "ssn", "PuTTY-User-Key-File",
	} {
		f.Add(before, " and more, after it", uint64(i))
		f.Add("some text", before, uint64(i))
	}
	f.Fuzz(mustNotSurvive)
}

func TestNoPlantedSecretSurvivesInProseAndCode(t *testing.T) {
	t.Parallel()
	seed := *plantSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	words := strings.Fields(`the server at port 8080 said "connection refused" ( retry = 3 ) { "name": "x", } func main() { return nil } // see
		https://example.com/docs?id=42#top and token: is = := password key; 2024-01-16T12:34:56Z 0x7f3a 1,234.56 user@host $HOME <div class='a'> [1] * - + | & \n \t
		-----BEGIN CERTIFICATE----- eyJ sk- ghp_ /home/ C:\Users\ 415 555 4111 1.2.3 10:20 :: @ é 漢字`)
	r := rand.New(rand.NewPCG(seed, 6))
	text := func() string {
		var out []string
		for range r.IntN(30) {
			out = append(out, words[r.IntN(len(words))])
		}
		return strings.Join(out, []string{" ", "\n", ""}[r.IntN(3)])
	}
	for i := range uint64(200) {
		mustNotSurvive(t, text(), text(), seed+i)
		if t.Failed() {
			t.Fatalf("-plant-seed=%d", seed)
		}
	}
}

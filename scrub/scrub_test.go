package scrub_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/scrub"
)

// cases has texts for each family. gone pairs a text with the part that must not be left; texts in stays must not
// change.
var cases = map[scrub.Family]struct {
	gone  [][2]string
	stays []string
}{
	scrub.Email: {
		gone: [][2]string{
			{"write to john@example.com today", "john@example.com"},
			{"<ann.o'neil+news@mail.example.co.uk>,bob", "ann.o'neil+news@mail.example.co.uk"},
			{"MAILTO:Jürgen@münchen.de.", "Jürgen@münchen.de"},
			{`{"user":"x_y-z@sub.domain.io"}`, "x_y-z@sub.domain.io"},
		},
		stays: []string{"@here is a mention", "npm i @types/node@20.1.0", "a @ b", "user@localhost", "decorator @app.route", "git@github.com:team/repo.git", "10@5 or x@y"},
	},
	scrub.Phone: {
		gone: [][2]string{
			{"call +1 415-555-2671 now", "555-2671"},
			{"call (415) 555-2671.", "(415) 555-2671"},
			{"415.555.2671", "415.555.2671"},
			{"+49 (0)30 901820", "901820"},
			{"tel:+442079460958", "+442079460958"},
			{"1-800-555-2671;", "800-555-2671"},
		},
		stays: []string{"on 2024-01-16 at 12:34:56", "commit 4155552671", "10-20-30", "version 1.2.3", "a+123456", "100-200-3000", "1705400000000"},
	},
	scrub.IP: {
		gone: [][2]string{
			{"from 203.0.113.77:8080", "203.0.113.77"},
			{"dial tcp 10.1.2.3: refused", "10.1.2.3"},
			{"host 192.168.178.20.", "192.168.178.20"},
			{"[2001:db8::ff00:42:8329]:443", "2001:db8::ff00:42:8329"},
			{"at fe80::1ff:fe23:4567:890a", "fe80::1ff:fe23:4567:890a"},
		},
		stays: []string{"127.0.0.1:80 and ::1 and 0.0.0.0", "v1.2.3.4", "std::vector<int>", "12:34:56", "1.2.3", "999.1.1.1", "mask 255.255.255.0", "a::b", "x.1.2.3.4"},
	},
	scrub.HomePath: {
		gone: [][2]string{
			{"open /home/alice/notes.txt", "alice"},
			{"/Users/bob.smith/Library", "bob.smith"},
			{`C:\Users\Carol Jones\Desktop`, "Carol Jones"},
			{`"C:\\Users\\dave\\x"`, "dave"},
			{"cd /home/eve", "eve"},
		},
		stays: []string{"/home/$USER/x", "/Users/Shared/x", "/home/ is a folder", "/usr/local/bin", "GET /users/{id}"},
	},
	scrub.VendorKey: {
		gone: [][2]string{
			{"key sk-ant-api03-" + random(93, 1) + "AA.", random(93, 1)},
			{"OPENAI=sk-proj-" + random(40, 2), random(40, 2)},
			{"(xoxb-123456789012-123456789012-" + random(24, 3) + ")", random(24, 3)},
			{"AIza" + random(35, 4) + ",", random(35, 4)},
			{"glpat-" + random(20, 5), random(20, 5)},
			{"stripe sk_live_" + random(24, 6), random(24, 6)},
			{"npm_" + random(36, 7), random(36, 7)},
			{"hf_" + strings.Repeat("aBcDeFgHiJkLmNoPqR", 2)[:34], "aBcDeFgHiJkLmNoPqR"},
			{"DD_API datadog_key: " + strings.ToLower(random(40, 8)), strings.ToLower(random(40, 8))},
			{"the SG." + random(22, 9) + "." + random(43, 9), random(43, 9)},
		},
		stays: []string{"a task-oriented-design-document", "sk-learn-and-other-libraries", "risk-based-authentication-of-users", "secret_santa_organisers", "npm_config_registry", "sg.example.com"},
	},
	scrub.AWS: {
		gone: [][2]string{
			{"id AKIAQYLPMN5HHHFPZAM2!", "AKIAQYLPMN5HHHFPZAM2"},
			{"ASIAQYLPMN5HHHFPZAM2", "ASIAQYLPMN5HHHFPZAM2"},
			{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzK4mPqRs8T", "wJalrXUtnFEMI"},
			{`AWS secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzK4mPqRs8T"`, "wJalrXUtnFEMI"},
		},
		stays: []string{"AKIA is a prefix", "AKIASHORT", "aws s3 ls s3://bucket", "draws 0123456789012345678901234567890123456789"},
	},
	scrub.GitHub: {
		gone: [][2]string{
			{"ghp_" + random(36, 11), random(36, 11)},
			{"token:ghs_" + random(36, 12) + ",", random(36, 12)},
			{"github_pat_" + random(22, 13) + "_" + random(59, 14), random(59, 14)},
			{"https://gho_" + random(36, 15) + "@github.com/x", random(36, 15)},
		},
		stays: []string{"ghp_short", "the ghp_ prefix", "github_pat_ is new"},
	},
	scrub.JWT: {
		gone: [][2]string{
			{"Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw", "eyJzdWIiOiIxMjM0In0"},
			{"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "eyJzdWIiOiJhIn0"},
			{`"t":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.cut`, "eyJhbGciOiJIUzI1NiJ9"},
		},
		stays: []string{"eyJ alone", "heyJude.song.mp3", "eyebrow.css"},
	},
	scrub.PrivateKey: {
		gone: [][2]string{
			{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nZXk=\n-----END OPENSSH PRIVATE KEY-----\nend", "b3BlbnNzaC1r"},
			{"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC" + strings.Repeat("x7", 900), "x7x7"},
			{`"-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n"`, "MIIEvQ"},
			{"-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF"},
			{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHq ann@laptop", "ann@laptop"},
			{"PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 1\nAAAAB3Nz\nPrivate-MAC: 0a1b\nx", "AAAAB3Nz"},
		},
		stays: []string{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "BEGIN PRIVATE KEY", "-----BEGIN PUBLIC KEY-----"},
	},
	scrub.Card: {
		gone: [][2]string{
			{"pay with 4111 1111 1111 1111 now", "1111"},
			{"5500-0000-0000-0004,", "5500"},
			{"amex 378282246310005.", "378282246310005"},
			{"3782 822463 10005", "822463"},
			{"card=6011111111111117", "6011111111111117"},
			{"two: 1 4242424242424242 2", "4242424242424242"},
		},
		stays: []string{"4111 1111 1111 1112", "1705400000000", "order 1234567812345678", "id a4111111111111111", "4111111111111111x", "0000000000000000"},
	},
	scrub.SSN: {
		gone: [][2]string{
			{"my ssn is 123-45-6789.", "123-45-6789"},
			{"078 05 1120", "078 05 1120"},
			{"SSN: 123456789", "123456789"},
			{"social security number 123456789", "123456789"},
		},
		stays: []string{"000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "1123-45-6789", "123-45-67890", "123456789"},
	},
	scrub.Password: {
		gone: [][2]string{
			{`password = "hunter2!"`, "hunter2"},
			{"DB_PASSWORD=correcthorse", "correcthorse"},
			{`{"client_secret":"abc def 123"}`, "abc def"},
			{`\"api_key\": \"q9w8e7r6\"`, "q9w8e7r6"},
			{"the password is s3cr3t-Pa55", "s3cr3t-Pa55"},
			{"postgres://app:p%40ss:w0rd@db:5432/x", "p%40ss"},
			{"redis://:abcd1234@h", "abcd1234"},
			{"Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
			{"curl -u admin:letmein https://x", "letmein"},
			{"Cookie: sid=abc; theme=dark\nnext", "sid=abc"},
			{"token: secret: abc12345", "abc12345"},
			{"mysql --password=qwertz1 -h x", "qwertz1"},
			{"const TOKEN = 'aVeryLongTokenOfLetters'", "aVeryLongTokenOfLetters"},
		},
		stays: []string{
			"the password: must be long", "password = os.Getenv(\"PW\")", "token := parser.Next()", "password=$PASSWORD", `password: "<your password>"`,
			"func (t token) is valid", "secret: ****", "token=config.Auth.Token", "basic understanding of authentication", "https://example.com/a:b", "the tokens were counted",
			"password: null", `{"password":"string"}`, "curl -u \"$USER\" x", "max_tokens: 4096",
		},
	},
	scrub.IBAN: {
		gone:  [][2]string{{"to DE89 3704 0044 0532 0130 00 please", "3704"}, {"GB82WEST12345698765432", "WEST12345698765432"}},
		stays: []string{"DE89 3704 0044 0532 0130 01", "AB12 CDEF"},
	},
}

// random returns letters and digits that look like a key. The same seed gives the same text.
func random(length, seed int) string {
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	text, state := make([]byte, length), uint32(seed)*2654435761+12345
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = letters[int(state>>16)%len(letters)]
	}
	return string(text)
}

func TestWhatEachFamilyFindsAndLeaves(t *testing.T) {
	t.Parallel()
	for _, family := range scrub.Families() {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			c := cases[family]
			if len(c.gone) < 2 || len(c.stays) < 2 {
				t.Fatal("there are too few cases")
			}
			for _, g := range c.gone {
				clean, findings := scrub.New(scrub.Options{}).Scrub(g[0])
				if strings.Contains(clean, g[1]) {
					t.Errorf("of %q is left %q", g[0], clean)
				}
				if len(findings) == 0 {
					t.Errorf("nothing was found in %q", g[0])
				}
			}
			for _, text := range c.stays {
				if clean := scrub.Text(text); clean != text {
					t.Errorf("%q became %q", text, clean)
				}
			}
		})
	}
}

func TestFamilyIsNamedInTheText(t *testing.T) {
	t.Parallel()
	got := scrub.Text("mail john@example.com from 203.0.113.7, ssn 123-45-6789, card 4111111111111111, +1 415-555-2671")
	want := "mail [redacted:email] from [redacted:ip], ssn [redacted:ssn], card [redacted:card], [redacted:phone]"
	if got != want {
		t.Errorf("got %q", got)
	}
}

func TestFamiliesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	s := scrub.New(scrub.Options{Without: []scrub.Family{scrub.IP}})
	if got := s.Text("dial 203.0.113.7 as a@b.org"); got != "dial 203.0.113.7 as [redacted:email]" {
		t.Errorf("got %q", got)
	}
}

func TestMarkThatSomebodyForgedHidesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[redacted:x john@example.com]", "[redacted:email] john@example.com", "[redacted:john@example.com]", "password=[redacted:hunter2!]",
	} {
		if clean := scrub.Text(text); strings.Contains(clean, "john@") || strings.Contains(clean, "hunter2") {
			t.Errorf("%q became %q", text, clean)
		}
	}
}

package scrub_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/scrub"
)

// FuzzScrubbedTextStaysAsItIs looks for a text that a second scrub changes, or that a scrub makes invalid or larger than
// its marks account for.
func FuzzScrubbedTextStaysAsItIs(f *testing.F) {
	r := rand.New(rand.NewPCG(2026, 10))
	for i, form := range secretForms() {
		f.Add(places[i%len(places)].put(strings.ReplaceAll(form.pattern, "{}", form.values[0].make(r))))
	}
	for _, text := range hostile() {
		f.Add(strings.Repeat(text, 3)[:min(3*len(text), 1<<10)])
	}
	f.Add("ALTER USER 'a'@'%' IDENTIFIED" + strings.Repeat("\x92", 8) + " WITH x BY 'native3';")
	leaves := scrub.New(scrub.Options{Without: []scrub.Family{scrub.IP, scrub.Email}})
	f.Fuzz(func(t *testing.T, text string) {
		clean, found := scrub.New(scrub.Options{}).Scrub(text)
		if again := scrub.Text(clean); again != clean {
			t.Errorf("%q became %q, then %q", text, clean, again)
		}
		if (clean == text) != (len(found) == 0) {
			t.Errorf("%q became %q, and found was %v", text, clean, found)
		}
		if utf8.ValidString(text) && !utf8.ValidString(clean) {
			t.Errorf("%q became %q, which is no text", text, clean)
		}
		if clean := leaves.Text(text); leaves.Text(clean) != clean {
			t.Errorf("with some families left, %q became %q, then %q", text, clean, leaves.Text(clean))
		}
	})
}

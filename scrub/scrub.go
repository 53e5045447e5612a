package scrub

import (
	"slices"
	"strings"
	"sync"
)

// Family says what kind of thing a rule finds. It is what stands in the scrubbed text: [redacted:email].
type Family string

// The families. The first twelve are those of source design 3.
const (
	Email      Family = "email"
	Phone      Family = "phone"
	IP         Family = "ip"          // addresses of hosts, without those of the machine itself
	HomePath   Family = "home_path"   // the user's name in the path of a home folder
	VendorKey  Family = "vendor_key"  // keys and tokens of vendors
	AWS        Family = "aws"         // access keys of Amazon's cloud
	GitHub     Family = "github"      // tokens of GitHub
	JWT        Family = "jwt"         // signed or encrypted tokens of JSON
	PrivateKey Family = "private_key" // SSH, PEM, PGP and PuTTY keys, and SSH keys with their owner's name
	Card       Family = "card"        // numbers of payment cards, by issuer, length and Luhn's check
	SSN        Family = "ssn"         // social security numbers of the United States
	Password   Family = "password"    // what is assigned to a password, key or token, in URLs and headers too
	IBAN       Family = "iban"        // bank accounts, by their check digits
)

// Families lists every family.
func Families() []Family {
	return []Family{Email, Phone, IP, HomePath, VendorKey, AWS, GitHub, JWT, PrivateKey, Card, SSN, Password, IBAN}
}

// mark begins what stands in the place of what was removed. Rules leave it alone.
const mark = "[redacted:"

// Finding is something that was removed.
type Finding struct {
	Family Family
	// Rule is the rule that found it, such as «assignment» or «stripe-access-token».
	Rule string
	// Secret is what was removed. It must not be stored or logged; a keyed hash of it may.
	Secret string
}

// Options adjust a Scrubber. The zero value removes all families.
type Options struct {
	// Without names families that are left in the text, such as IP where operators need to see the addresses in errors.
	Without []Family
}

// Scrubber removes what its rules find. It may be used by many goroutines.
type Scrubber struct {
	without []Family
}

// New makes a Scrubber. It compiles nothing yet.
func New(options Options) *Scrubber {
	return &Scrubber{without: slices.Clone(options.Without)}
}

var everything = New(Options{})

// Text removes all that any rule finds.
func Text(text string) string { return everything.Text(text) }

// Text removes what the rules find.
func (s *Scrubber) Text(text string) string {
	clean, _ := s.Scrub(text)
	return clean
}

// maxPasses bounds how often a stretch of a text is looked through: removing one thing may part two that stood together,
// so that the second is seen only then.
const maxPasses = 5

// Scrub removes what the rules find, and tells what that was. A text that was scrubbed before stays as it is.
func (s *Scrubber) Scrub(text string) (clean string, findings []Finding) {
	out := cleaner{scrubber: s}
	out.scrub(text)
	if len(out.findings) == 0 {
		return text, nil
	}
	return out.text.String(), out.findings
}

// scrub cleans what stands between marks.
func (c *cleaner) scrub(text string) {
	for rest := 0; rest < len(text); {
		start, end := nextMark(text, rest)
		c.clean(text[rest:start], maxPasses)
		c.text.WriteString(text[start:end])
		rest = end
	}
}

// cleaner gathers a scrubbed text.
type cleaner struct {
	scrubber *Scrubber
	text     strings.Builder
	findings []Finding
	work     int // see text
}

// clean scrubs a stretch without marks, then what is left of it, each part by itself, until nothing is found in any. That
// a part is looked at by itself is what makes a scrubbed text stay as it is. If there is still something after the last
// pass, nothing of the part is left: only texts made for it come that far.
func (c *cleaner) clean(part string, passes int) {
	t := &text{s: part}
	found := c.scrubber.find(t)
	c.work += t.work + len(part)
	if len(found) == 0 {
		c.text.WriteString(part)
		return
	}
	if passes == 0 {
		found = []span{{0, len(part), found[0].family, found[0].rule}}
	}
	end := 0
	for _, f := range found {
		c.clean(part[end:f.start], passes-1)
		c.text.WriteString(mark + string(f.family) + "]")
		c.findings = append(c.findings, Finding{Family: f.family, Rule: f.rule, Secret: part[f.start:f.end]})
		end = f.end
	}
	c.clean(part[end:], passes-1)
}

// span is a piece of a text that a rule found.
type span struct {
	start, end int
	family     Family
	rule       string
}

// find gives what the rules find, in order, none inside or across another.
func (s *Scrubber) find(t *text) []span {
	if len(t.s) < shortest {
		return nil
	}
	found := s.byWords(t, addresses(t.s, numbers(t.s, nil)))
	found = slices.DeleteFunc(found, func(f span) bool {
		return f.start >= f.end || slices.Contains(s.without, f.family)
	})
	slices.SortFunc(found, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	return apart(found)
}

// shortest is how long a text is at the least in which there is something, such as an address ::1:2 or an e-mail a@b.cd.
const shortest = 6

// nextMark gives the first mark from a place on, or the end of the text twice.
func nextMark(text string, from int) (start, end int) {
	for at := from; ; {
		next := strings.Index(text[at:], mark)
		if next < 0 {
			return len(text), len(text)
		}
		at += next
		name := text[at+len(mark) : min(len(text), at+len(mark)+longestFamily+1)]
		if name, _, closed := strings.Cut(name, "]"); closed && familyNames()[name] {
			return at, at + len(mark) + len(name) + 1
		}
		at += len(mark)
	}
}

// longestFamily is the length of the longest name of a family.
const longestFamily = len(PrivateKey)

var familyNames = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for _, family := range Families() {
		names[string(family)] = true
	}
	return names
})

// apart joins spans that overlap, so that nothing of either is left. The longer one says what it was.
func apart(found []span) []span {
	var out []span
	for _, f := range found {
		last := len(out) - 1
		if last < 0 || f.start >= out[last].end {
			out = append(out, f)
			continue
		}
		if f.end-f.start > out[last].end-out[last].start {
			out[last].family, out[last].rule = f.family, f.rule
		}
		out[last].end = max(out[last].end, f.end)
	}
	return out
}

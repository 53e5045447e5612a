package scrub

import (
	"slices"
	"strings"
	"sync"
)

// Family is the kind of a secret. The scrubbed text names it: [redacted:email].
type Family string

// The families. The first 12 come from source design 3.
const (
	Email      Family = "email"
	Phone      Family = "phone"
	IP         Family = "ip"          // addresses of hosts, without the machine's own
	HomePath   Family = "home_path"   // the user's name in the path of a home folder
	VendorKey  Family = "vendor_key"  // keys and tokens of vendors
	AWS        Family = "aws"         // AWS access keys
	GitHub     Family = "github"      // tokens of GitHub
	JWT        Family = "jwt"         // JSON Web Tokens, signed or encrypted
	PrivateKey Family = "private_key" // SSH, PEM, PGP and PuTTY keys, and SSH keys with their owner's name
	Card       Family = "card"        // numbers of payment cards, by issuer, length and Luhn checksum
	SSN        Family = "ssn"         // social security numbers of the United States
	Password   Family = "password"    // values assigned to a password, key or token, in URLs and headers too
	IBAN       Family = "iban"        // bank accounts, by their check digits
)

// Families lists every family.
func Families() []Family {
	return []Family{Email, Phone, IP, HomePath, VendorKey, AWS, GitHub, JWT, PrivateKey, Card, SSN, Password, IBAN}
}

// mark begins the replacement of a secret. Rules leave it alone.
const mark = "[redacted:"

// Finding is a secret that was removed.
type Finding struct {
	Family Family
	// Rule is the name of the rule, such as `assignment` or `stripe-access-token`.
	Rule string
	// Secret is the removed text. Never store or log it; a keyed hash of it is allowed.
	Secret string
}

// Options adjust a [Scrubber]. The zero value removes all families.
type Options struct {
	// Without names families to keep in the text, such as [IP] if operators need to see the addresses in
	// errors.
	Without []Family
}

// Scrubber removes the findings of its rules from texts. Many goroutines may use it at once.
type Scrubber struct {
	without []Family
}

// New makes a Scrubber. New compiles no patterns yet.
func New(options Options) *Scrubber {
	return &Scrubber{without: slices.Clone(options.Without)}
}

var everything = New(Options{})

// Text removes the findings of all rules.
func Text(text string) string { return everything.Text(text) }

// Text removes the findings of the scrubber's rules.
func (s *Scrubber) Text(text string) string {
	clean, _ := s.Scrub(text)
	return clean
}

// maxPasses bounds the passes over a stretch of a text. Removing one secret may separate two that stood
// together, so that only the next pass sees the second.
const maxPasses = 5

// Scrub removes the findings of the rules, and returns them. A scrubbed text stays as it is.
func (s *Scrubber) Scrub(text string) (clean string, findings []Finding) {
	out := cleaner{scrubber: s}
	out.scrub(text)
	if len(out.findings) == 0 {
		return text, nil
	}
	return out.text.String(), out.findings
}

// scrub cleans the stretches between marks.
func (c *cleaner) scrub(text string) {
	for rest := 0; rest < len(text); {
		start, end := nextMark(text, rest)
		c.clean(text[rest:start], maxPasses)
		c.text.WriteString(text[start:end])
		rest = end
	}
}

// cleaner collects a scrubbed text.
type cleaner struct {
	scrubber *Scrubber
	text     strings.Builder
	findings []Finding
	work     int // see text
}

// clean scrubs a stretch without marks, then each remaining part by itself, until nothing is found. Because
// each part is scrubbed by itself, a scrubbed text stays as it is. If the last pass still finds something, the
// whole part is removed: only texts made for this purpose get so far.
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

// find returns the findings of the rules in order, without overlaps.
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

// shortest is the least length of a text with a finding, such as an address ::1:2 or an e-mail a@b.cd.
const shortest = 6

// nextMark returns the first mark from a place on, or the end of the text twice.
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

// apart joins overlapping spans, so that all of both is removed. The longer one gives the family and the rule.
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

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

// maxPasses bounds how often a text is looked through: removing one thing may part two that stood together, so that
// the second is seen only then.
const maxPasses = 4

// Scrub removes what the rules find, and tells what that was. A text that was scrubbed before stays as it is.
func (s *Scrubber) Scrub(text string) (clean string, findings []Finding) {
	for range maxPasses {
		spans := s.find(text)
		if len(spans) == 0 {
			break
		}
		var out strings.Builder
		end := 0
		for _, f := range spans {
			out.WriteString(text[end:f.start])
			out.WriteString(mark + string(f.family) + "]")
			findings = append(findings, Finding{Family: f.family, Rule: f.rule, Secret: text[f.start:f.end]})
			end = f.end
		}
		out.WriteString(text[end:])
		text = out.String()
	}
	return text, findings
}

// span is a piece of a text that a rule found.
type span struct {
	start, end int
	family     Family
	rule       string
}

// find gives what the rules find, in order, none inside or across another.
func (s *Scrubber) find(text string) []span {
	found := append(numbers(text), addresses(text)...)
	for _, c := range candidates(text) {
		if !slices.Contains(s.without, c.rule.family) {
			found = c.find(text, found)
		}
	}
	found = slices.DeleteFunc(found, func(f span) bool {
		return f.start >= f.end || slices.Contains(s.without, f.family) || marked(text, f)
	})
	slices.SortFunc(found, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	return apart(found)
}

// marked reports whether a span lies in what was put in the place of something.
func marked(text string, f span) bool {
	begin := strings.LastIndex(text[:min(f.start+len(mark), len(text))], mark)
	if begin < 0 {
		return false
	}
	length := strings.IndexByte(text[begin:], ']') + 1
	return isMark(text[begin:begin+length]) && f.end <= begin+length
}

// isMark reports whether a value is what was put in the place of something, and nothing else but a full stop or a bracket.
func isMark(value string) bool {
	rest, is := strings.CutPrefix(value, mark)
	name, rest, closed := strings.Cut(rest, "]")
	return is && closed && familyNames()[name] && strings.Trim(rest, ".,;:!?)]}>") == ""
}

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

package scrub

import "strings"

// vendorRule is a rule of gitleaks, as written by `make rules`.
type vendorRule struct {
	id      string
	words   []string
	pattern string
	entropy float64
	whole   bool
}

// vendorRules are the rules of gitleaks.
func vendorRules() []*rule {
	rules := make([]*rule, len(gitleaks))
	for i, v := range gitleaks {
		rules[i] = &rule{family: familyOf(v.id), name: v.id, words: v.words, pattern: v.pattern, entropy: v.entropy, whole: v.whole}
	}
	return rules
}

func familyOf(id string) Family {
	switch {
	case strings.HasPrefix(id, "github-"):
		return GitHub
	case strings.HasPrefix(id, "aws-"):
		return AWS
	}
	return VendorKey
}

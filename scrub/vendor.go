package scrub

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed gitleaks.json
var gitleaksJSON []byte

// vendorRule is a rule of gitleaks, as «make rules» writes it.
type vendorRule struct {
	ID      string   `json:"id"`
	Words   []string `json:"words"`
	Pattern string   `json:"pattern"`
	Entropy float64  `json:"entropy,omitempty"`
	Whole   bool     `json:"whole,omitempty"`
}

// vendorRules are the rules of gitleaks. The file is part of the program, so that an error in it is one of the program.
func vendorRules() []*rule {
	var listed []vendorRule
	if err := json.Unmarshal(gitleaksJSON, &listed); err != nil {
		panic(fmt.Sprintf("gitleaks.json: %v", err))
	}
	rules := make([]*rule, len(listed))
	for i, v := range listed {
		rules[i] = &rule{family: familyOf(v.ID), name: v.ID, words: v.Words, pattern: v.Pattern, entropy: v.Entropy, whole: v.Whole}
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

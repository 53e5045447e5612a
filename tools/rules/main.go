// Command rules writes scrub/gitleaks.json and scrub/gitleaks.LICENSE: the rules of gitleaks in the form that package scrub
// reads. «make rules» runs it; a newer version of gitleaks is a change of the constant below.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// gitleaks is where the rules come from (MIT). Only its configuration is read; nothing of its code is built.
const gitleaks = "github.com/zricethezav/gitleaks/v8@v8.30.1"

type rule struct {
	ID       string   `toml:"id" json:"id"`
	Keywords []string `toml:"keywords" json:"words"`
	Regex    string   `toml:"regex" json:"pattern"`
	Path     string   `toml:"path" json:"-"`
	Entropy  float64  `toml:"entropy" json:"entropy,omitempty"`
	Whole    bool     `toml:"-" json:"whole,omitempty"`
	Group    int      `toml:"secretGroup" json:"-"`
}

// ours are found by rules of package scrub itself, which see more: generic-api-key and curl-* by assignments and headers,
// and the rest by their own families.
var ours = []string{"generic-api-key", "curl-auth-header", "curl-auth-user", "jwt", "jwt-base64", "private-key", "sidekiq-sensitive-url"}

// anywhere are those whose word may stand far from what they find.
var anywhere = []string{"airtable-personnal-access-token", "facebook-access-token", "sourcegraph-access-token"}

// firstGroup is up to the first group of a pattern.
var firstGroup = regexp.MustCompile(`^((?:[^\\(]|\\.|\(\?)*)\(`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "mod", "download", "-json", gitleaks).Output()
	if err != nil {
		return fmt.Errorf("download %s: %w", gitleaks, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	var config struct{ Rules []rule }
	if _, err := toml.DecodeFile(filepath.Join(module.Dir, "config", "gitleaks.toml"), &config); err != nil {
		return err
	}
	rules, err := translate(config.Rules)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(module.Dir, "LICENSE"))
	if err != nil {
		return err
	}
	target := filepath.Join("..", "..", "scrub")
	return errors.Join(write(filepath.Join(target, "gitleaks.json"), rules), os.WriteFile(filepath.Join(target, "gitleaks.LICENSE"), license, 0o644))
}

// translate leaves out what goes by the names of files, and lets a key end before any character that is no part of it:
// gitleaks wants a blank, a quote or a semicolon there, and so misses a key before a comma or a bracket.
func translate(all []rule) ([]rule, error) {
	var kept []rule
	for _, r := range all {
		if r.Path != "" || r.Regex == "" || slices.Contains(ours, r.ID) {
			continue
		}
		r.Regex = strings.ReplaceAll(r.Regex, `(?:[\x60'"\s;]|\\[nr]|$)`, `(?:\W|$)`)
		for ; r.Group > 1; r.Group-- { // the first group is to be the secret
			r.Regex = firstGroup.ReplaceAllString(r.Regex, "$1(?:")
		}
		r.Whole = slices.Contains(anywhere, r.ID)
		for i, word := range r.Keywords {
			r.Keywords[i] = strings.ToLower(word)
		}
		if _, err := regexp.Compile(r.Regex); err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		if parsed, err := syntax.Parse(r.Regex, syntax.Perl); err != nil || parsed.MaxCap() > 9 || len(r.Keywords) == 0 {
			return nil, fmt.Errorf("%s: it has no words, or too many groups: %w", r.ID, err)
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// write writes one rule a line, so that a new version shows what it changes.
func write(path string, rules []rule) error {
	var text bytes.Buffer
	for i, r := range rules {
		text.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(r); err != nil {
			return err
		}
		text.Write(bytes.TrimSpace(line.Bytes()))
	}
	text.WriteString("\n]\n")
	return os.WriteFile(path, text.Bytes(), 0o644)
}

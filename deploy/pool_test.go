package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesAskForAPool checks addresses of PostgreSQL in examples and guides. Long-running programs, with the role
// sluice_app, must ask for a pool of 5 to 20 connections. The role sluice_owner migrates and dumps, and needs no pool.
func TestExamplesAskForAPool(t *testing.T) {
	t.Parallel()
	address, pool := regexp.MustCompile("(postgres://|…)[^\\s'\"`]*/jobs\\b[^\\s'\"`]*"), regexp.MustCompile(`[?&]pool_min_conns=5&pool_max_conns=20(&|$)`)
	for _, path := range []string{
		"README.md", "kubernetes/secret.example.yaml", "systemd/sluice.env.example", "../docs/guide/production.md", "../docs/guide/failover.md",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, at := range address.FindAllString(string(text), -1) {
			if strings.Contains(at, "sluice_owner") {
				continue
			}
			if found++; !pool.MatchString(at) {
				t.Errorf("%s: the address %s has no pool of 5 to 20 connections", path, at)
			}
		}
		if found == 0 {
			t.Errorf("%s has no address of PostgreSQL", path)
		}
	}
}

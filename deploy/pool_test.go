package deploy_test

import (
	"os"
	"regexp"
	"testing"
)

// TestExamplesAskForAPool looks for the pool of 5 to 20 connections in the address of every example of a program, and in the guide.
func TestExamplesAskForAPool(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"kubernetes/secret.example.yaml", "systemd/sluice.env.example", "../docs/guide/production.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`jobs\?sslmode=[a-z-]+&pool_min_conns=5&pool_max_conns=20\b`).Match(text) {
			t.Errorf("%s has no address with a pool of 5 to 20 connections", path)
		}
	}
}

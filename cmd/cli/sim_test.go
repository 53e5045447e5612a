package cli

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowly is a context whose Err takes a second, so that a simulation lasts long on the fake clock of synctest.
type slowly struct{ context.Context }

// Err returns the error of the inner context, a second later.
func (c slowly) Err() error {
	time.Sleep(time.Second)
	return c.Context.Err()
}

// TestSimTellsHowFarItIsWhereItsOutputIsAFile runs a scenario whose output does not go to a terminal.
func TestSimTellsHowFarItIsWhereItsOutputIsAFile(t *testing.T) {
	t.Parallel()
	far := regexp.MustCompile(`(?m)^\d\S* of virtual time: \d[\d ]* jobs came, \d[\d ]* ended$`)
	for _, quiet := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out, said bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &said}
			args := []string{"sim", "--scenario", "noisy-tenant"}
			if quiet {
				args = append(args, "-q")
			}
			if code := a.run(slowly{t.Context()}, args); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, said.String())
			}
			lines := far.FindAllString(said.String(), -1)
			if quiet && said.Len() > 0 || !quiet && len(lines) < 2 {
				t.Errorf("quiet: %v. Standard error has %d lines that tell how far it is:\n%s", quiet, len(lines), said.String())
			}
			if strings.ContainsAny(said.String(), "\r\x1b") || far.Match(out.Bytes()) {
				t.Errorf("a line is written over, or is in the output:\n%q\n%s", said.String(), out.String())
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
)

func TestTheCommandSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"demo -workspaces 1": "the demo needs 5 workspaces",
		"dance":              `there is no command "dance"`,
		"":                   "usage:",
		"serve -listen :80":  "only listens on loopback",
	} {
		fields := strings.Fields(args)
		if len(fields) > 0 && fields[0] == "serve" {
			fields = append(fields, "-db", t.TempDir()+"/workflows.db")
		}
		if err := start(t.Context(), fields); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}

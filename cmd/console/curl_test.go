package console_test

import (
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// TestAShellReadsNamesInCallsAsNames lets a shell run calls to copy about tenants whose names it could read as variables or commands.
func TestAShellReadsNamesInCallsAsNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"$TOKEN", "$(id)", "`id`", `a"b'c\d`, "a;b&c d", "a$"} {
		call := console.Curl(http.MethodPost, "/tenants/"+url.PathEscape(name), url.Values{"q": {name}}, map[string]any{"reason": name})
		run := exec.CommandContext(t.Context(), "sh", "-c", `TOKEN=secret; SLUICE=https://jobs.example.com; curl() { printf '%s\n' "$@"; }; `+call)
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", call, err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		at, err := url.Parse(lines[len(lines)-1])
		if err != nil || at.Path != httpapi.Root+"/tenants/"+name || at.Query().Get("q") != name {
			t.Errorf("of the tenant %q a shell sends %s, %v", name, lines[len(lines)-1], err)
		}
	}
}

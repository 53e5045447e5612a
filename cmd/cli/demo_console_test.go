//go:build unix

package cli_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTheDemoStaysInItsConsole redrives dead letters after the demo has ended: its upkeep and a worker still run.
func TestTheDemoStaysInItsConsole(t *testing.T) {
	t.Parallel()
	d := start(t, "", "demo", "--console", "--listen", "127.0.0.1:0", "--payments", "1000", "--tenants", "10", "--due-in", "1s")
	url := d.finds(t, `^console: (http://\S+/)\?window=15m`)
	d.says(t, "the console stays at "+url)
	for path, text := range map[string]string{"?window=15m": "<h1>Overview</h1>", "dead": "the account is closed", "workers": "upkeep"} {
		if status, page := ask(t, url+path); status != http.StatusOK || !strings.Contains(page, text) {
			t.Errorf("/%s answers %d, want it to say %q", path, status, text)
		}
	}
	answer, err := http.Post(url+"api/v1/operations", "application/json", strings.NewReader(`{"kind":"requeue","where":"state:dead","reason":"the account is open again"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("the redrive answers %d", answer.StatusCode)
	}
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, left := ask(t, url+"api/v1/jobs?where=generation:1+state:dead")
		_, dead := ask(t, url+"api/v1/jobs?where=generation:2+state:dead")
		if !strings.Contains(left, `"id"`) && strings.Contains(dead, `"id"`) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the dead letters never ran again: left %s, dead again %s", left, dead)
		}
	}
	if err := d.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.ends(t, 0)
}

package temporaltest_test

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/freeport"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

func TestAddressTakesConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a Temporal server where there is none")
	}
	conn, err := net.Dial("tcp", temporaltest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestServerKeepsWorkflowsInItsFile starts a workflow through the JSON interface of the web UI. It finds the same run
// after the server has stopped in order, and after the server was killed.
func TestServerKeepsWorkflowsInItsFile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a Temporal server where there is none")
	}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	server, err := temporaltest.Start(t.Context(), temporaltest.Options{
		UIPort:     port,
		Store:      filepath.Join(t.TempDir(), "temporal.db"),
		Namespaces: map[string]time.Duration{"short": 5 * time.Second},
		Dynamic:    map[string]string{"history.retentionTimerJitterDuration": "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	address, workflow := server.Address, server.UI+"/api/v1/namespaces/short/workflows/kept"
	if page := call(t, http.MethodGet, server.UI, ""); !strings.Contains(page, "<html") {
		t.Errorf("the web UI answers %s", page)
	}
	run := runID(t, call(t, http.MethodPost, workflow, `{"workflowType":{"name":"none"},"taskQueue":{"name":"none"}}`))

	for _, stop := range []func() error{server.End, server.Halt} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", address); err == nil {
			t.Error("something still listens", conn.Close())
		}
		if err := server.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if server.Address != address {
			t.Errorf("it came back at %s, not at %s", server.Address, address)
		}
		if again := runID(t, call(t, http.MethodGet, workflow, "")); again != run {
			t.Errorf("run %s after the start, %s before", again, run)
		}
	}
}

func TestServerSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a Temporal server where there is none")
	}
	for _, refused := range []struct {
		options temporaltest.Options
		reason  string
	}{
		{temporaltest.Options{Dynamic: map[string]string{"no.such.key": "1"}}, "no.such.key"},
		{temporaltest.Options{Store: filepath.Join(t.TempDir(), "missing", "file")}, "missing"},
		{temporaltest.Options{Store: "postgres://nobody:secret@127.0.0.1:1/none"}, "connection refused"},
	} {
		_, err := temporaltest.Start(t.Context(), refused.options)
		if !errors.Is(err, temporaltest.ErrNotReady) || !strings.Contains(err.Error(), refused.reason) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", refused.options, err)
		}
	}
}

// call sends a request to the web UI's interface, as a page of the UI does.
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text := new(strings.Builder)
	if err := response.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, text)
	}
	return text.String()
}

func runID(t *testing.T, answer string) string {
	t.Helper()
	found := regexp.MustCompile(`"runId":\s*"([^"]+)"`).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("no run in %s", answer)
	}
	return found[1]
}

package cli_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-queue/sluice/internal/freeport"
)

// port puts the number of a free port into a variable, as in `port METRICS`.
func port(ts *testscript.TestScript, _ bool, args []string) {
	free, err := freeport.Find()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(free))
}

// scrape reads the metrics at a port until each pattern matches a line, as in `scrape $METRICS '^sluice_queues 1$'`. It
// leaves the metrics in metrics.txt. So it also waits for the work of background commands.
func scrape(ts *testscript.TestScript, _ bool, args []string) {
	var text []byte
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		answer, err := http.Get("http://127.0.0.1:" + args[0] + "/metrics")
		if err != nil {
			continue // the command does not listen yet
		}
		text, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		ts.Check(err)
		if matchesAll(text, args[1:]) {
			ts.Check(os.WriteFile(ts.MkAbs("metrics.txt"), text, 0o600))
			return
		}
	}
	ts.Fatalf("%q never came; the last was:\n%s", args[1:], text)
}

func matchesAll(text []byte, patterns []string) bool {
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).Match(text) {
			return false
		}
	}
	return true
}

// asks requests the metrics at a port with a Host header, and checks the status, as in `asks $METRICS evil.example
// 421`.
func asks(ts *testscript.TestScript, _ bool, args []string) {
	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+args[0]+"/metrics", nil)
	ts.Check(err)
	request.Host = args[1]
	answer, err := http.DefaultClient.Do(request)
	ts.Check(err)
	_ = answer.Body.Close()
	if code := strconv.Itoa(answer.StatusCode); code != args[2] {
		ts.Fatalf("it answers %s to %s with %s, want %s", args[0], args[1], code, args[2])
	}
}

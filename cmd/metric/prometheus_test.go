package metric_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/internal/freeport"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestPrometheusReadsIt has a real Prometheus server scrape the metrics, and queries the server.
func TestPrometheusReadsIt(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{})
	if _, err := s.client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	s.enqueue("mail", "good", 7, sluice.EnqueueOptions{})
	if _, err := s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 2, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
		t.Fatal(err)
	}
	s.gauges.Read(t.Context())
	program := httptest.NewServer(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	defer program.Close()
	server := startPrometheus(t, program.Listener.Addr())
	for text, want := range map[string]string{
		`sluice_moves_total{queue="mail",event="enqueue"}`:                          "7",
		`sum(sluice_jobs{state=~"ready|claimed"})`:                                  "7",
		`sluice_jobs{state="ready"}`:                                                "5",
		`histogram_quantile(0.5, sum by (le) (sluice_batch_jobs_bucket)) <= bool 2`: "1",
		`absent(sluice_leases_lost_total{queue="mail"})`:                            "",
	} {
		if got := asked(server, text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	for _, of := range metric.SourceNames() {
		if status, _ := query(server, of.Query); status != "success" {
			t.Errorf("%s of %s: the server says %s to %s", of.Name, of.Source, status, of.Query)
		}
		if of.Name != "success rate" {
			continue
		}
		if got := asked(server, of.Query); got != "1" {
			t.Errorf("the success rate where nothing ended is %q, want 1", got)
		}
	}
}

// startPrometheus starts a Prometheus server, and waits until it has scraped the target.
func startPrometheus(t *testing.T, target net.Addr) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("there is no prometheus; `go run ./internal/testbed` installs it on Debian: ", err)
	}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	config := filepath.Join(folder, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: sluice, static_configs: [{targets: [%q]}]}]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	server := exec.CommandContext(t.Context(), path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address, "--log.level=error")
	server.Stderr = t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for until := time.Now().Add(10 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if asked(address, `up == 1`) == "1" {
			return address
		}
	}
	t.Fatal("the server has scraped nothing")
	return ""
}

// asked returns the first value of a query; empty: the query finds none.
func asked(server, text string) string {
	_, values := query(server, text)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// query returns the server's status for a query, and the values that it finds.
func query(server, text string) (status string, values []string) {
	answer, err := http.Get("http://" + server + "/api/v1/query?query=" + url.QueryEscape(text))
	if err != nil {
		return err.Error(), nil
	}
	defer func() { _ = answer.Body.Close() }()
	var found struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Value [2]any
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return err.Error(), nil
	}
	for _, r := range found.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return found.Status + found.Error, values
}

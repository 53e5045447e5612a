package leaktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/upkeep"
)

// given are secrets in the data and the words of people. The store keeps these as they are, and no other place may have
// them.
var given = struct{ payload, label, pause, cancel, runNow, says string }{
	"in-Payload-7731", "in-Label-7732", "in-Pause-7733", "in-Cancel-7734", "in-RunNow-7735", "in-Says-7736",
}

func secretly(value string) string { return "the password=" + value + " is in it" }

// act puts the secrets into a payload, a label, and the reasons of acts.
func (o *office) act() {
	o.Helper()
	why := func(secret string) sluice.Act { return sluice.Act{By: "ada", Reason: secretly(secret)} }
	o.queue("given", "far")
	receipt, err := o.client.Enqueue(o.Context(), sluice.NewJob{Queue: "given", Payload: json.RawMessage(`{"password": "` + given.payload + `"}`), EnqueueOptions: sluice.EnqueueOptions{
		Labels: map[string]string{"note": secretly(given.label)}, DueAt: time.Now().Add(time.Hour),
	}})
	must(o.T, err)
	must(o.T, o.client.RunNow(o.Context(), []sluice.ID{receipt.ID}, why(given.runNow)))
	d := dispatcher.New(o.store, dispatcher.Options{
		Engines: map[string]engine.Engine{"far": failing{}}, Logger: o.logger, LogLimit: -1, Scrub: o.scrub,
	})
	_, err = d.Once(o.Context(), "given")
	must(o.T, err)
	err = o.client.Pause(o.Context(), "given", why(given.pause))
	must(o.T, err)
	_, err = dispatcher.New(o.store, dispatcher.Options{
		Engines: map[string]engine.Engine{"far": failing{}}, Logger: o.logger, LogLimit: -1, Scrub: o.scrub,
	}).Once(o.Context(), "given")
	must(o.T, err)
	must(o.T, o.client.Cancel(o.Context(), []sluice.ID{receipt.ID}, why(given.cancel)))
}

// alert has upkeep notify a webhook, and a receiver that always fails. It returns the bodies that the webhook got.
func (o *office) alert() string {
	o.Helper()
	o.rule("breaker-open")
	o.rule("holders-with-conditions")
	var bodies locked
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(&bodies, r.Body)
		if err != nil {
			o.Error(err)
		}
	}))
	defer server.Close()
	hook, err := webhook.New(server.URL, webhook.Options{})
	must(o.T, err)
	_, err = upkeep.New(o.store, upkeep.Options{Receivers: []alert.Receiver{hook, deaf{}}, Logger: o.logger, LogLimit: -1, Scrub: o.scrub}).Once(o.Context(), true)
	must(o.T, err)
	if !strings.Contains(bodies.String(), "the breaker is open: engine far") {
		o.Errorf("the webhook was not told what troubles a dispatcher, but:\n%s", bodies.String())
	}
	return bodies.String()
}

// rule makes a rule fire at once, with a secret in its summary.
func (o *office) rule(name string) {
	o.Helper()
	_, _, err := alert.SetRule(o.Context(), o.store, name, "", sluice.Act{By: "ada"}, func(r *alert.Rule) error {
		r.For, r.Summary = 0, secretly(given.says)
		return nil
	})
	must(o.T, err)
}

// deaf is a receiver of alerts that always fails.
type deaf struct{}

func (deaf) Name() string                                { return "deaf" }
func (deaf) Notify(context.Context, alert.Message) error { return leaky(7) }

// tellsNothingGiven looks for the secrets that people gave. The store must have them, and no place may show them,
// except a rule's words to receivers.
func (o *office) tellsNothingGiven(bytes string, leaves bool, places map[string]string) {
	o.Helper()
	for name, secret := range map[string]string{
		"payload": given.payload, "label": given.label, "reason of a pause": given.pause, "reason of a cancel": given.cancel,
		"reason of run-now": given.runNow, "words of a rule": given.says,
	} {
		if bytes != "" && !holds(bytes, secret) {
			o.Errorf("the store does not have the %s as it was given", name)
		}
		for where, text := range places {
			if text == "" {
				o.Errorf("%s is empty", where)
			}
			has := holds(text, secret)
			if has && !leaves && (where != "the webhook" || name != "words of a rule") {
				o.Errorf("%s has the secret in the %s", where, name)
			}
			if logged := name == "label" || name == "reason of a pause" || name == "words of a rule"; leaves && logged && where == "the log" && !has {
				o.Errorf("the log left alone does not have the %s", name)
			}
		}
	}
	for _, s := range secrets {
		if holds(places["the scrape"], s.secret) {
			o.Errorf("the scrape has %q", s.secret)
		}
	}
	if want := `sluice_moves_total{event="bury",queue="mail",reason="permanent"} 1`; !strings.Contains(places["the scrape"], want) {
		o.Errorf("the scrape does not have %s", want)
	}
}

// meter counts the work and reads the gauges of a store, for a scrape.
type meter struct {
	*metric.Observer
	registry *prometheus.Registry
	gauges   *metric.Gauges
}

func newMeter(t *testing.T, store sluice.Store) *meter {
	t.Helper()
	m := &meter{registry: prometheus.NewRegistry()}
	options := metric.Options{Registerer: m.registry, Failed: func(source string, err error) { t.Error(source, err) }}
	var err error
	m.Observer, err = metric.New(options)
	must(t, err)
	m.gauges, err = metric.NewGauges(store, options)
	must(t, err)
	return m
}

// scrape returns the answer to a scrape of Prometheus.
func (m *meter) scrape(t *testing.T) string {
	t.Helper()
	m.gauges.Read(t.Context())
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Error(fmt.Sprint("the scrape is answered with ", answer.Code))
	}
	return answer.Body.String()
}

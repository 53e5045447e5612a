package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/store/remote"
)

// said answers the requests of a store with the answer of its server.
type said func(*http.Request) (status int, body string)

func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := s(r)
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
}

// hears opens a store whose server answers so.
func hears(t *testing.T, answer said) *remote.Store {
	t.Helper()
	store, err := remote.Open(t.Context(), "http://127.0.0.1", remote.Options{CallTimeout: 3 * time.Millisecond, Client: &http.Client{Transport: said(func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/whoami") {
			return http.StatusOK, `{"name":"local"}`
		}
		return answer(r)
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// FuzzProblem answers calls with any status and any text. Each call that fails says why, and what it asks a caller to wait
// is no time of the past.
func FuzzProblem(f *testing.F) {
	for status, text := range map[int]string{
		404: `{"code":"not_found","why":"there is no such job","do":"list what there is"}`, 422: `{"code":"invalid","why":"x","fields":[{"field":"body.queue","rule":"must be set"}]}`,
		429: `{"code":"full","retry_after_seconds":5,"about":{"queue":"mail","waiting":9,"limit":8,"jobs":1}}`, 409: `{"code":"not_empty","about":{"queue":"mail","holds":{"jobs":3}}}`,
		503: `{"code":"store_unavailable","retry_after_seconds":1}`, 502: `<html>`, 500: `{"code":7}`, 401: `{"code":"unauthorized"}`, 413: `{"code":"too_large","fields":[]}`, 400: `null`,
		200: `[`, 201: `{}`, 403: `{"code":"queue_not_admitted","about":{"max_queues":3}}`, 451: `{"code":"other_runner","about":null}`, 599: ``, 300: `{"code":"full","retry_after_seconds":1e300}`,
	} {
		f.Add(status, text)
	}
	f.Fuzz(func(t *testing.T, status int, text string) {
		if status < 200 || status > 599 {
			return // not a status of an answer
		}
		store := hears(t, func(*http.Request) (int, string) { return status, text })
		_, err := store.Queues(t.Context(), sluice.QueueFilter{Limit: 1})
		var answered *remote.Error
		var full *pressure.FullError
		switch {
		case err == nil && status >= 300:
			t.Fatalf("%d %q is a success", status, text)
		case err == nil:
			return
		case !errors.As(err, &answered) && !errors.Is(err, sluice.ErrUnavailable):
			t.Errorf("%d %q: a caller cannot know what %v means", status, text, err)
		case answered != nil && answered.Status != status:
			t.Errorf("%d %q: the status of the error is %d", status, text, answered.Status)
		case errors.As(err, &full) && full.RetryAfter < 0:
			t.Errorf("%d %q: the caller shall wait for %s", status, text, full.RetryAfter)
		}
	})
}

// FuzzStream answers the stream of signals with any text. Before and after it the store says that it hears less, and no
// text makes it say anything else than the server can.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		": the stream begins\nretry: 1000\n\nid: a-1\nevent: hearing\ndata: {\"hearing\":\"all\"}\n\n", "event: signals\ndata: {\"queue\":\"mail\"}\n\nevent: behind\ndata: {\"missed\":3}\n\n",
		"event: signals\ndata: {\"cancelled\":\"01a1fb72-1dea-7abc-8fc6-99e4817522bb\"}\n\n", "event: signals\ndata: {\"ended\":\"x\"}\n\n", "event: hearing\ndata: {\"hearing\":\"nothing\"}\n\n",
		"data: {}\n\n", "event: signals\r\ndata: null\r\n\r\n", "event:signals\ndata:{}\n", "event: end\ndata: {\"reason\":\"the server ends\"}\n\n", "\x00\xff", strings.Repeat("x", 2000), "event: hearing\ndata: {\"hearing\":7}\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		times := 0
		store := hears(t, func(*http.Request) (int, string) {
			if times++; times > 1 {
				cancel()
			}
			return http.StatusOK, text
		})
		var heard []sluice.Signal
		if err := store.Watch(ctx, func(s sluice.Signal) { heard = append(heard, s) }); err != nil {
			t.Fatal(err)
		}
		if len(heard) < 3 || heard[0].Hearing != sluice.HearsLess || heard[1] != (sluice.Signal{}) {
			t.Errorf("%q: the store says %+v", text, heard)
		}
		for _, s := range heard {
			if s.Hearing != "" && s.Hearing != sluice.HearsAll && s.Hearing != sluice.HearsLess {
				t.Errorf("%q: the store hears %q", text, s.Hearing)
			}
		}
	})
}

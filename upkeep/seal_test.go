package upkeep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
)

// TestUpkeepSealsAndTellsTheHeadOutsideOfTheStore sends the head of the audit's chain to a webhook and to the log. It
// checks that the chain has the head, and that each was sent once.
func TestUpkeepSealsAndTellsTheHeadOutsideOfTheStore(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	t.Cleanup(server.Close)
	hook, err := webhook.New(server.URL, webhook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), sluice.Act{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	options := upkeep.Options{Receivers: []alert.Receiver{hook}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 { // upkeep knows a receiver after its first round, and sends the head once a day
		if _, err := upkeep.New(store, options).Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	var message alert.Message
	select {
	case body := <-bodies:
		if err := json.Unmarshal(body, &message); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the receiver was not told of the head")
	}
	if message.Event != alert.HeadOfAudit || message.AuditHead == "" || len(bodies) > 0 {
		t.Errorf("the receiver was told %+v, and %d more", message, len(bodies))
	}
	head, err := audit.ParseHead(message.AuditHead)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(context.WithoutCancel(t.Context()), store, audit.VerifyOptions{Heads: []audit.Head{head}})
	if err != nil || report.Fault != nil || len(report.Heads) != 1 || report.Entries == 0 {
		t.Errorf("verified %+v: %v", report, err)
	}
	if !strings.Contains(log.String(), `msg="audit head"`) || !strings.Contains(log.String(), "head="+report.Last.Head().String()) {
		t.Errorf("the log does not have the head %s:\n%s", report.Last.Head(), log.String())
	}
}

// TestHeadIsToldOfAChainThatBeganAnew makes a store as a move leaves it: its audit has the last head of the old store, whose
// chain was long, and its own chain begins with seal 1.
func TestHeadIsToldOfAChainThatBeganAnew(t *testing.T) {
	t.Parallel()
	hook, err := webhook.New("http://127.0.0.1:1", webhook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.AppendAudit(t.Context(), []sluice.AuditEntry{{
		Object: audit.ObjectAudit, Name: "head", Event: audit.EventHead, Actor: "host:1:x", After: json.RawMessage(`{"seal":5000}`),
	}}); err != nil {
		t.Fatal(err)
	}
	options := upkeep.Options{Receivers: []alert.Receiver{hook}, HeadInterval: time.Nanosecond, Logger: slog.New(slog.DiscardHandler)}
	for range 3 { // upkeep knows a receiver after its first round
		if _, err := upkeep.New(store, options).Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	told, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectAudit, Name: "head", Limit: 10})
	if err != nil || len(told) < 2 {
		t.Errorf("the head was told %d times, %v; want that of the new chain too", len(told)-1, err)
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// serving starts the program on a Temporal server and a broker, and returns where it answers.
func serving(t *testing.T, broker string) (url string) {
	t.Helper()
	server, err := temporaltest.Start(t.Context(), temporaltest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	address := apptest.FreeAddress(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-db", filepath.Join(t.TempDir(), "payments.db"), "-temporal", server.Address, "-listen", address, "-kafka", broker})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + address
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestServeTakesPaymentsInFromKafka runs phase A on a Temporal server. One payment makes the workflow of its whole
// batch fail.
func TestServeTakesPaymentsInFromKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "payments", "payments.dead-letter"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	broker := cluster.ListenAddrs()[0]
	bank, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic("payments"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bank.Close)
	for _, payer := range []string{"ada", strings.Repeat("x", 200), "eve"} {
		text := fmt.Sprintf(`{"id":"p-%.3s","payer":%q,"payee":"bob","cents":1200,"currency":"EUR","due_at":"2040-12-24T16:00:00Z"}`, payer, payer)
		if err := bank.ProduceSync(t.Context(), kgo.StringRecord(text)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	url := serving(t, broker)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the machine may be busy
	defer cancel()
	if _, err := cluster.WaitGroupInfo(ctx, "sluice-payments", func(g *kfake.GroupInfo) bool {
		return g != nil && g.Commits["payments"][0].Offset == 3
	}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"p-ada", "p-eve"} {
		if answer := get(t, url+"/payments/"+id); !strings.Contains(answer, `"status":"SCHEDULED"`) {
			t.Errorf("%s: %s", id, answer)
		}
	}
	if letters := cluster.PartitionInfo("payments.dead-letter", 0).HighWatermark; letters != 1 {
		t.Errorf("%d dead letters", letters)
	}
	metrics := get(t, url+"/metrics")
	for _, want := range []string{
		`payments_kafka_lag{partition="0",topic="payments"} 0`, `payments_kafka_messages_total{outcome="scheduled",topic="payments"} 2`,
		`payments_kafka_messages_total{outcome="dead_letter",topic="payments"} 1`, `sluice_build_info{`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/kafka"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

const (
	topic = "payments"
	group = "intake"
)

// childDB and childBroker are the variables that make the test program the process to be killed.
const (
	childDB     = "PAYMENTS_TEST_KAFKA_DB"
	childBroker = "PAYMENTS_TEST_KAFKA_BROKER"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDB) != "" {
		child()
	}
	pgtest.Main(m)
}

// site is a database, a broker that speaks Kafka's protocol, and a producer.
type site struct {
	*testing.T
	books    *books.Books
	domain   domain.Domain
	db       string
	cluster  *kfake.Cluster
	producer *kgo.Client
}

func newSite(t *testing.T, db string) *site {
	t.Helper()
	s := &site{T: t, db: db}
	s.books, s.domain = prepare(t.Context(), db)
	t.Cleanup(func() { _ = s.books.Close() })
	var err error
	s.cluster, err = kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(3, topic), kfake.SeedTopics(1, topic+".dead-letter"), kfake.GroupMinSessionTimeout(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Close)
	s.producer = s.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return s
}

// prepare opens a database with the queue of payments. It panics on an error, because the child has no test to fail.
func prepare(ctx context.Context, db string) (*books.Books, domain.Domain) {
	b, err := books.Open(ctx, db)
	if err != nil {
		panic(err)
	}
	d := payment.New(b)
	_, ensured := b.Client.EnsureQueue(ctx, d.Queue, d.Preset, sluice.Act{By: "test"})
	if err := errors.Join(b.Prepare(ctx, d.Tables, d.Follower()), ensured); err != nil {
		panic(err)
	}
	return b, d
}

func onSQLite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return newSite(t, filepath.Join(t.TempDir(), "payments.db"))
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(s *site)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { test(onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(newSite(t, pgtest.NewDatabase(t)))
	})
}

func (s *site) client(options ...kgo.Opt) *kgo.Client {
	s.Helper()
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(s.cluster.ListenAddrs()...))...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	return c
}

func (s *site) produce(partition int32, values ...string) {
	s.Helper()
	for _, value := range values {
		record := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("key"), Value: []byte(value)}
		if err := s.producer.ProduceSync(s.Context(), record).FirstErr(); err != nil {
			s.Fatal(err)
		}
	}
}

// paying returns n payments whose ids begin with a name.
func paying(name string, n int) (values []string) {
	for i := range n {
		values = append(values, request(fmt.Sprintf("%s-%d", name, i)))
	}
	return values
}

func request(id string) string {
	text, _ := json.Marshal(payment.Request{
		ID: id, Payer: "ada", Payee: "bob", Cents: 1200, Currency: "EUR", DueAt: time.Date(2040, 1, 2, 16, 0, 0, 0, time.UTC),
	})
	return string(text)
}

// phaseA runs phase A in Temporal's test suite, without a server.
func phaseA(d domain.Domain) kafka.Submit {
	return func(_ context.Context, items []json.RawMessage) (result domain.Result, err error) {
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestWorkflowEnvironment()
		// The machine may be busy.
		env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}).SetTestTimeout(time.Minute)
		d.Init.Register(env)
		env.ExecuteWorkflow(d.Init.Workflow, items)
		return result, env.GetWorkflowResult(&result)
	}
}

func options(broker ...string) kafka.Options {
	return kafka.Options{
		Brokers: broker, Topic: topic, Group: group, Queue: payment.Queue, Look: 5 * time.Millisecond,
		Retry: sluice.Backoff{Base: 5 * time.Millisecond, Factor: 1, Max: 5 * time.Millisecond},
		Client: []kgo.Opt{
			kgo.FetchMaxWait(100 * time.Millisecond), kgo.HeartbeatInterval(20 * time.Millisecond),
			kgo.SessionTimeout(time.Second), kgo.RebalanceTimeout(30 * time.Second), kgo.MetadataMinAge(10 * time.Millisecond),
		},
	}
}

// member is a running consumer of the group.
type member struct {
	*kafka.Consumer
	*testing.T
	stop func()
}

// join starts a consumer with phase A and the store. The function change may replace them.
func (s *site) join(change func(o *kafka.Options, submit *kafka.Submit, depths *kafka.Depths)) member {
	s.Helper()
	o, submit, depths := options(s.cluster.ListenAddrs()...), phaseA(s.domain), kafka.Depths(s.books.Store)
	o.Logger = slog.New(slog.NewTextHandler(s.Output(), nil))
	if change != nil {
		change(&o, &submit, &depths)
	}
	c, err := kafka.New(depths, submit, o)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	s.Cleanup(stop)
	return member{c, s.T, stop}
}

// metric returns the value of a metric, or -1 if it is missing.
func (m member) metric(name string, labels ...string) float64 {
	m.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Consumer)
	families, err := registry.Gather()
	if err != nil {
		m.Fatal(err)
	}
	for _, family := range families {
		for _, sample := range family.Metric {
			var values []string
			for _, label := range sample.Label {
				values = append(values, label.GetValue())
			}
			if family.GetName() == name && strings.Contains(strings.Join(values, ","), strings.Join(labels, ",")) {
				return sample.GetGauge().GetValue() + sample.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// committed waits until the group has committed a number of offsets, over all partitions.
func (s *site) committed(want int64) {
	s.Helper()
	s.group(group, want)
}

func (s *site) group(name string, want int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute) // the machine may be busy
	defer cancel()
	_, err := s.cluster.WaitGroupInfo(ctx, name, func(g *kfake.GroupInfo) bool { return sum(g) >= want })
	if got := sum(s.cluster.GroupInfo(name)); err != nil || got != want {
		s.Fatalf("%d offsets are committed, want %d: %v", got, want, err)
	}
}

func sum(g *kfake.GroupInfo) (n int64) {
	if g == nil {
		return 0
	}
	for _, commit := range g.Commits[topic] {
		n += commit.Offset
	}
	return n
}

// holds checks the number of stored payments, each of which has one job.
func (s *site) holds(want int) {
	s.Helper()
	var payments int
	if err := s.books.DB().QueryRowContext(s.Context(), "select count(*) from payment").Scan(&payments); err != nil {
		s.Fatal(err)
	}
	depth, err := s.books.Client.Depth(s.Context(), payment.Queue)
	if err != nil || payments != want || depth.Scheduled != want {
		s.Errorf("%d payments, %d jobs, want %d: %v", payments, depth.Scheduled, want, err)
	}
}

// letters reads a number of dead letters.
func (s *site) letters(n int) (letters []*kgo.Record) {
	s.Helper()
	reader := s.client(kgo.ConsumeTopics(topic+".dead-letter"), kgo.FetchMaxWait(100*time.Millisecond))
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	for len(letters) < n {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			s.Fatalf("%d dead letters, want %d: %v", len(letters), n, err)
		}
		letters = append(letters, fetches.Records()...)
	}
	return letters
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// outage makes calls fail until it is over, and reports each call.
type outage struct {
	over  atomic.Bool
	calls chan struct{}
}

func newOutage() *outage { return &outage{calls: make(chan struct{}, 1000)} }

func (o *outage) err() error {
	select {
	case o.calls <- struct{}{}:
	default:
	}
	if o.over.Load() {
		return nil
	}
	return errors.New("the store is away")
}

// await waits for n calls.
func (o *outage) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-o.calls:
		case <-time.After(time.Minute):
			t.Fatal("nobody tries again")
		}
	}
}

// before makes phase A fail during an outage.
func (o *outage) before(submit kafka.Submit) kafka.Submit {
	return func(ctx context.Context, items []json.RawMessage) (domain.Result, error) {
		if err := o.err(); err != nil {
			return domain.Result{}, err
		}
		return submit(ctx, items)
	}
}

// depths reports calls for depths, and fails during an outage.
type depths struct {
	kafka.Depths
	*outage
}

func (d depths) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	if err := d.err(); err != nil {
		return sluice.Depth{}, err
	}
	return d.Depths.Depth(ctx, queue, limit)
}

// lines receives log lines; a line is lost if no one reads it.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

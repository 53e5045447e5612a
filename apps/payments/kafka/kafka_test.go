package kafka_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/kafka"
	"github.com/sluice-queue/sluice/apps/payments/payment"
)

func TestEachMessageBecomesOneJob(t *testing.T) {
	onBoth(t, func(s *site) {
		nameless := strings.Replace(request("x"), `"id":"x",`, "", 1)
		s.produce(0, paying("a", 250)...)
		s.produce(1, nameless, nameless, request("a-0"))
		s.produce(2, strings.Replace(request("x"), `"x"`, "null", 1), request("b"), request("b"))
		m := s.join(nil)
		s.committed(256)
		s.holds(250 + 2 + 1 + 1) // two equal messages without an id are two payments; a-0 and b came twice, and are one payment each
		for _, id := range []string{"payments:1:0", "payments:1:1", "payments:2:0"} {
			if standing, err := s.domain.Status(s.Context(), id); err != nil || standing.Status != "SCHEDULED" {
				s.Errorf("%s: %q, %v", id, standing.Status, err)
			}
		}
		m.stop()
		if scheduled, twice := m.metric("payments_kafka_messages_total", "scheduled"), m.metric("payments_kafka_messages_total", "duplicate"); scheduled != 254 || twice != 2 {
			s.Errorf("%v scheduled, %v duplicates", scheduled, twice)
		}

		again := s.join(func(o *kafka.Options, _ *kafka.Submit, _ *kafka.Depths) { o.Group = "replay" })
		s.group("replay", 256)
		s.holds(254)
		again.stop()
		if twice := again.metric("payments_kafka_messages_total", "duplicate"); twice != 256 {
			s.Errorf("%v duplicates of the replay", twice)
		}
	})
}

// child takes in messages, reports that their jobs are stored, and never commits.
func child() {
	_, d := prepare(context.Background(), os.Getenv(childDB))
	stored := phaseA(d)
	b, _ := prepare(context.Background(), os.Getenv(childDB))
	c, err := kafka.New(b.Store, func(ctx context.Context, items []json.RawMessage) (domain.Result, error) {
		result, err := stored(ctx, items)
		fmt.Println("stored", result.Scheduled, err)
		select {}
	}, options(os.Getenv(childBroker)))
	if err != nil {
		panic(err)
	}
	c.Run(context.Background())
}

func TestAProcessKilledBeforeTheCommitLosesAndDoublesNothing(t *testing.T) {
	s := onSQLite(t)
	s.produce(0, paying("p", 20)...)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), childDB+"="+s.db, childBroker+"="+s.cluster.ListenAddrs()[0])
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "stored ") || !strings.HasSuffix(line, "<nil>\n") {
		t.Errorf("the child said %q, %v", line, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // ends by SIGKILL
	if done := sum(s.cluster.GroupInfo(group)); done != 0 {
		t.Fatalf("%d offsets are committed", done)
	}
	m := s.join(nil)
	s.committed(20)
	s.holds(20)
	m.stop()
	if twice := m.metric("payments_kafka_messages_total", "duplicate"); twice < 1 {
		t.Error("no message was read again: the child was killed too early")
	}
}

func TestACommitThatFailsMakesNoSecondJob(t *testing.T) {
	s := onSQLite(t)
	fault := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.UnknownMemberID, Count: -1})
	s.produce(0, paying("p", 20)...)
	m := s.join(nil)
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.stop()
	fault.Remove()
	s.holds(20)
	s.join(nil)
	s.committed(20)
	s.holds(20)
}

func TestMembersComeAndGo(t *testing.T) {
	s := onSQLite(t)
	all := func(name string) {
		for p := range int32(3) {
			s.produce(p, paying(fmt.Sprintf("%s-%d", name, p), 30)...)
		}
	}
	all("alone")
	first := s.join(nil)
	second := s.join(nil)
	all("joining")
	if _, err := s.cluster.WaitGroupStable(t.Context(), group, 2); err != nil {
		t.Fatal(err)
	}
	all("two")
	s.committed(270)
	first.stop()
	all("left")
	s.committed(360)
	s.holds(360)
	second.stop()
	if n := second.metric("payments_kafka_messages_total", "scheduled"); n < 90 {
		t.Errorf("the second member took %v", n)
	}
}

func TestAMemberInAnOutageLetsPartitionsGo(t *testing.T) {
	s := onSQLite(t)
	s.produce(0, paying("a", 10)...)
	s.produce(1, paying("b", 10)...)
	s.produce(2, paying("c", 10)...)
	away := newOutage()
	s.join(func(_ *kafka.Options, submit *kafka.Submit, _ *kafka.Depths) { *submit = away.before(*submit) })
	away.await(t, 2)
	s.join(nil)
	s.produce(0, paying("d", 10)...)
	s.produce(1, paying("e", 10)...)
	s.produce(2, paying("f", 10)...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := s.cluster.WaitGroupInfo(ctx, group, func(g *kfake.GroupInfo) bool { return sum(g) >= 20 }); err != nil {
		t.Fatal("the second member gets no partition: ", err)
	}
	away.over.Store(true)
	s.committed(60) // the first member does not take back the offsets that the second has committed
	s.holds(60)
}

func TestAMissingTopicIsNamedAndWaitedFor(t *testing.T) {
	s := onSQLite(t)
	s.produce(0, "nonsense")
	warned := make(lines, 1000)
	s.join(func(o *kafka.Options, _ *kafka.Submit, _ *kafka.Depths) {
		o.DeadLetters, o.Logger = "later", slog.New(slog.NewTextHandler(warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	select {
	case line := <-warned:
		if !strings.Contains(line, `topic \"later\": UNKNOWN_TOPIC_OR_PARTITION`) {
			t.Error(line)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody is warned")
	}
	if err := s.cluster.CreateTopic("later", 1, nil); err != nil {
		t.Fatal(err)
	}
	s.committed(1)
	if n := s.cluster.PartitionInfo("later", 0).HighWatermark; n != 1 {
		t.Errorf("%d dead letters", n)
	}
}

func TestAMemberStopsWhileKafkaIsAway(t *testing.T) {
	s := onSQLite(t)
	s.produce(0, paying("p", 10)...)
	m := s.join(nil)
	s.committed(10)
	s.cluster.Close()
	began := time.Now()
	m.stop()
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestOtherMessagesAreDeadLettersBeforeTheirOffsetsAreCommitted(t *testing.T) {
	s := onSQLite(t)
	fault := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic + ".dead-letter", Err: kerr.InvalidTopicException, Count: -1})
	long := strings.Replace(request("long"), "ada", strings.Repeat("x", 200), 1)
	huge := `{"id":"` + strings.Repeat("x", 100_000) + `"}`
	bad := []string{"nonsense", "", "null", "[1]", huge, `{"id":7}`, request("b-b d"), long, strings.Replace(request("good-0"), "1200", "1", 1)}
	s.produce(1, append(paying("good", 5), bad...)...)
	m := s.join(nil)
	if err := fault.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	s.holds(5)
	if done := sum(s.cluster.GroupInfo(group)); done != 0 {
		t.Errorf("%d offsets are committed before the dead letters are there", done)
	}
	fault.Remove()
	s.committed(14)
	s.holds(5)
	reasons := []string{"no JSON object", "no JSON object", "null", "no JSON object", "100009 bytes", "cannot unmarshal number", "visible ASCII", "at most 128 bytes", "another payment"}
	for i, letter := range s.letters(len(bad)) {
		if string(letter.Value) != bad[i] || string(letter.Key) != "key" || !strings.Contains(header(letter, kafka.HeaderReason), reasons[i]) {
			t.Errorf("letter %d: %.80q because %.300s", i, letter.Value, header(letter, kafka.HeaderReason))
		}
		if at := header(letter, kafka.HeaderTopic) + header(letter, kafka.HeaderPartition) + header(letter, kafka.HeaderOffset); at != fmt.Sprintf("payments1%d", 5+i) {
			t.Errorf("letter %d comes from %s", i, at)
		}
	}
	m.stop()
	if n := m.metric("payments_kafka_messages_total", "dead_letter"); n != float64(len(bad)) {
		t.Errorf("%v dead letters are counted", n)
	}
}

func TestADeadLetterThatIsTooLongIsANote(t *testing.T) {
	s := onSQLite(t)
	s.produce(0, strings.Repeat("x", 90_000), request("good"))
	s.join(func(o *kafka.Options, _ *kafka.Submit, _ *kafka.Depths) {
		o.Client = append(o.Client, kgo.ProducerBatchMaxBytes(50_000))
	})
	s.committed(2)
	letter := s.letters(1)[0]
	if header(letter, kafka.HeaderLeftOut) != "90000" || header(letter, kafka.HeaderOffset) != "0" || len(letter.Value) > 0 {
		t.Errorf("letter %v", letter.Headers)
	}
	s.holds(1)
}

func TestAPaymentOfAnAbortedTransactionIsNone(t *testing.T) {
	s := onSQLite(t)
	bank := s.client(kgo.TransactionalID("bank"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for id, end := range map[string]kgo.TransactionEndTry{"aborted": kgo.TryAbort, "kept": kgo.TryCommit} {
		if err := bank.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := bank.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(request(id))}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := bank.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	s.produce(0, request("last"))
	s.join(nil)
	s.committed(5) // two of the offsets are marks of transactions
	s.holds(2)
	if _, err := s.domain.Status(t.Context(), "aborted"); err == nil {
		t.Error("the aborted payment is stored")
	}
}

func TestTheTopicIsPausedWhileTooManyJobsWait(t *testing.T) {
	s := onSQLite(t)
	looks := newOutage()
	looks.over.Store(true)
	s.produce(0, paying("first", 10)...)
	m := s.join(func(o *kafka.Options, _ *kafka.Submit, store *kafka.Depths) {
		o.MaxWaiting, *store = 10, depths{*store, looks}
	})
	s.committed(10)
	for m.metric("payments_kafka_paused", "depth") != 1 {
		looks.await(t, 1)
	}
	fetches := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	looks.await(t, 100)
	if n := fetches.Hits(); n > 2 { // two fetches were under way before the pause
		t.Errorf("%d fetches while the topic is paused", n)
	}
	s.produce(1, paying("second", 5)...)
	looks.await(t, 20)
	s.committed(10)
	s.holds(10)
	if lag := m.metric("payments_kafka_lag", "1", topic); lag != 5 {
		t.Errorf("the lag of partition 1 is %v", lag)
	}
	page, err := s.books.Client.Jobs(t.Context(), sluice.JobFilter{Queue: payment.Queue})
	if err != nil {
		t.Fatal(err)
	}
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	if err := s.books.Client.Cancel(t.Context(), ids, sluice.Act{By: "test", Reason: "room"}); err != nil {
		t.Fatal(err)
	}
	s.committed(15)
	if lag := m.metric("payments_kafka_lag", "1", topic); lag != 0 {
		t.Errorf("the lag of partition 1 is %v", lag)
	}
}

func TestNothingIsLostWhileTheStoreIsAway(t *testing.T) {
	s := onSQLite(t)
	submits, counts := newOutage(), newOutage()
	s.produce(0, paying("p", 10)...)
	m := s.join(func(_ *kafka.Options, submit *kafka.Submit, store *kafka.Depths) {
		*submit, *store = submits.before(*submit), depths{*store, counts}
	})
	counts.await(t, 3)
	if m.metric("payments_kafka_paused", "outage") != 1 {
		t.Error("the topic is not paused while nobody can count")
	}
	counts.over.Store(true)
	submits.await(t, 3)
	if m.metric("payments_kafka_paused", "outage") != 1 || sum(s.cluster.GroupInfo(group)) != 0 {
		t.Error("the topic is not paused, or offsets are committed, while nothing can be stored")
	}
	submits.over.Store(true)
	s.produce(0, paying("later", 10)...)
	s.committed(20)
	s.holds(20)
	if m.metric("payments_kafka_paused", "outage") != 0 {
		t.Error("the topic is still paused")
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(o *kafka.Options){
		"brokers":       func(o *kafka.Options) { o.Brokers = nil },
		"topic":         func(o *kafka.Options) { o.Topic = strings.Repeat("x", 50) },
		"group":         func(o *kafka.Options) { o.Group = "" },
		"queue":         func(o *kafka.Options) { o.Queue = "" },
		"dead letters":  func(o *kafka.Options) { o.DeadLetters = o.Topic },
		"max waiting":   func(o *kafka.Options) { o.MaxWaiting = -1 },
		"make a client": func(o *kafka.Options) { o.Client = append(o.Client, kgo.ConsumePartitions(nil), kgo.ConsumerGroup("")) },
	} {
		o := options("localhost:1")
		change(&o)
		if _, err := kafka.New(nil, nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

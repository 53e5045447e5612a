package kafka

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// outcome is what became of a message.
type outcome string

const (
	scheduled  outcome = "scheduled"
	duplicate  outcome = "duplicate"
	deadLetter outcome = "dead_letter"
)

// scrapeLimit is how long Kafka may take to tell the lag before a scrape goes without.
const scrapeLimit = 5 * time.Second

var (
	lagDesc = prometheus.NewDesc("payments_kafka_lag",
		"Messages of a partition that this process reads and whose offsets are not committed.", []string{"topic", "partition"}, nil)
	messagesDesc = prometheus.NewDesc("payments_kafka_messages_total",
		"Messages taken in, by what became of them: scheduled, duplicate, dead_letter.", []string{"topic", "outcome"}, nil)
	pausedDesc = prometheus.NewDesc("payments_kafka_paused",
		"1 while the topic is paused, by cause: depth (too many jobs wait), outage (the store, Temporal or Kafka is away).", []string{"topic", "cause"}, nil)
)

// seen is what metrics tell, and what other goroutines than Run's learn or ask.
type seen struct {
	mu       sync.Mutex
	owned    map[int32]bool
	paused   map[cause]bool
	messages map[outcome]int
}

func newSeen() *seen {
	return &seen{owned: map[int32]bool{}, paused: map[cause]bool{}, messages: map[outcome]int{}}
}

func (s *seen) own(partitions []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		s.owned[p] = true
	}
}

func (s *seen) disown(partitions []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		delete(s.owned, p)
	}
}

func (s *seen) owns(partition int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[partition]
}

func (s *seen) count(o outcome, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[o] += n
}

// pause reports whether the cause is new.
func (s *seen) pause(why cause) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.paused[why]
	s.paused[why] = true
	return !was
}

// resume reports whether the cause was there, and whether no other is left.
func (s *seen) resume(why cause) (ended, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended = s.paused[why]
	delete(s.paused, why)
	return ended, len(s.paused) == 0
}

// Describe names the metrics.
func (c *Consumer) Describe(to chan<- *prometheus.Desc) {
	to <- lagDesc
	to <- messagesDesc
	to <- pausedDesc
}

// Collect reads the metrics. It asks Kafka for the lag; if Kafka does not answer within 5 s, the lag is missing.
func (c *Consumer) Collect(to chan<- prometheus.Metric) {
	topic := c.options.Topic
	c.seen.mu.Lock()
	for _, o := range []outcome{scheduled, duplicate, deadLetter} {
		to <- prometheus.MustNewConstMetric(messagesDesc, prometheus.CounterValue, float64(c.seen.messages[o]), topic, string(o))
	}
	for _, why := range []cause{byDepth, byOutage} {
		paused := 0.0
		if c.seen.paused[why] {
			paused = 1
		}
		to <- prometheus.MustNewConstMetric(pausedDesc, prometheus.GaugeValue, paused, topic, string(why))
	}
	c.seen.mu.Unlock()
	for partition, lag := range c.lag() {
		to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(lag), topic, strconv.Itoa(int(partition)))
	}
}

// lag asks Kafka how far the committed offsets of this member's partitions are behind their ends.
func (c *Consumer) lag() map[int32]int64 {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	groups, err := c.admin.Lag(ctx, c.options.Group)
	if err == nil {
		err = groups.Error()
	}
	if err != nil {
		c.options.Logger.Warn("kafka: lag not known", "topic", c.options.Topic, "group", c.options.Group, "error", err)
		return nil
	}
	lags := map[int32]int64{}
	for partition, lag := range groups[c.options.Group].Lag[c.options.Topic] {
		if lag.Err == nil && c.seen.owns(partition) {
			lags[partition] = lag.Lag
		}
	}
	return lags
}

// logger hands on what the Kafka client warns of.
type logger struct{ to *slog.Logger }

func (l logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l logger) Log(level kgo.LogLevel, text string, pairs ...any) {
	if level == kgo.LogLevelError {
		l.to.Error("kafka: "+text, pairs...)
		return
	}
	l.to.Warn("kafka: "+text, pairs...)
}

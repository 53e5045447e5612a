// Package notify says how the notifications of alerts are jobs: it names the queue of each receiver, and has the
// settings of these queues.
package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Prefix begins the names of the queues of receivers. Each receiver has its own queue, so that a process claims only
// what it can deliver.
const Prefix = "sluice.notify."

// A process delivers Batch notifications under one claim, and a receiver may take Timeout for each. Lease is how long
// the claim holds, so that the process need not renew it.
const (
	Batch   = 10
	Timeout = 10 * time.Second
	Lease   = (Batch + 2) * Timeout
)

// maxName is the most bytes of a queue's name, and sumBytes the bytes of a checksum in it.
const (
	maxName  = 64
	sumBytes = 4
)

// Queue returns the queue of a receiver. A name that fits into a queue's name stays readable as it is. Another name
// is cut, and gets a checksum that tells it apart.
func Queue(receiver string) string {
	if len(Prefix)+len(receiver) <= maxName && sluice.CheckQueueName(Prefix+receiver) == nil {
		return Prefix + receiver
	}
	sum := sha256.Sum256([]byte(receiver))
	tail := "-" + hex.EncodeToString(sum[:sumBytes])
	readable := strings.Map(func(r rune) rune {
		if r < 0x80 && sluice.CheckQueueName("q"+string(r)) == nil {
			return r
		}
		return '-'
	}, receiver)
	return Prefix + readable[:min(len(readable), maxName-len(Prefix)-len(tail))] + tail
}

// IsQueue reports whether a queue is that of a receiver.
func IsQueue(name string) bool { return strings.HasPrefix(name, Prefix) }

// Settings returns the settings with which the queue of a receiver is made. An operator may change them.
//
// The age of a notification ends its tries: NotificationKept of package alert. The attempts end them only after a requeue,
// which does not make the notification younger. So many attempts take about as long.
func Settings() sluice.Settings {
	s := sluice.DefaultSettings()
	s.Lease = Lease
	s.Timeout = Timeout
	s.MaxAttempts = 2000
	s.MaxRecoveries = 10_000
	s.Backoff = sluice.Backoff{Base: 2 * time.Second, Factor: 2, Max: 5 * time.Minute, Jitter: 2 * time.Second}
	return s
}

// Act is the act by which a store makes the queue of a receiver.
func Act() sluice.Act {
	return sluice.Act{By: "sluice", Reason: "notifications of alerts to a receiver", ID: sluice.NewID()}
}

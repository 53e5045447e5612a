package schedule

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// fireText is how a template names the fire's instant, and dateText the date of the fire in the schedule's zone. Both can
// stand only inside a string of JSON, and their values need no escapes there.
const (
	fireText = "{{fire}}"
	dateText = "{{date}}"
)

// insert makes the job of a fire. Stores fill in what the queue's settings say.
func (s Schedule) insert(at time.Time, id sluice.ID) sluice.Insert {
	zone, err := loadZone(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	fill := strings.NewReplacer(fireText, at.UTC().Format(time.RFC3339Nano), dateText, at.In(zone).Format(time.DateOnly)).Replace
	labels := map[string]string{Label: s.Name}
	for name, value := range s.Labels {
		labels[name] = fill(value)
	}
	job := sluice.Insert{NewJob: sluice.NewJob{Queue: s.Queue, Payload: json.RawMessage(fill(string(bytes.TrimSpace(s.Payload))))}}
	job.ID, job.Key, job.Tenant, job.Priority, job.Labels = id, fill(s.Key), s.Tenant, s.Priority, labels
	if job.Priority == 0 {
		job.Priority = sluice.DefaultPriority
	}
	if job.Key != "" {
		job.KeyScope, job.OnDuplicate = sluice.WhileUnfinished, sluice.Keep
	}
	if s.Overlap == QueueOne || s.Overlap == QueueAll {
		job.OrderKey = "schedule:" + s.Name
	}
	return job
}

// due delays a job by the jitter of its fire. A job that is due already keeps no due time, which costs stores less.
func (s Schedule) due(job *sluice.Insert, at, now time.Time) {
	if s.Jitter <= 0 {
		return
	}
	delay := time.Duration(binary.BigEndian.Uint64(s.hash(at, ""))%uint64(s.Jitter.Microseconds()+1)).Abs() * time.Microsecond
	if due := at.Add(delay); due.After(now) {
		job.DueAt = due
	}
}

// hash returns bytes that follow from a schedule's name, an instant and a seed.
func (s Schedule) hash(at time.Time, seed string) []byte {
	sum := sha256.Sum256([]byte(s.Name + "\x00" + at.UTC().Format(time.RFC3339Nano) + "\x00" + seed))
	return sum[:]
}

// jobID returns the ID of the job of a fire. It follows from the schedule and the instant, so a fire that is repeated, by
// whichever process, finds its own job. Without the seed, a producer could store another job with the ID before.
func (s Schedule) jobID(at time.Time) sluice.ID { return idOf(at, s.hash(at, s.Progress.seed)) }

// handID returns the ID of the job that an act of a person makes.
func (s Schedule) handID(act sluice.ID) sluice.ID {
	sum := sha256.Sum256(append([]byte(s.Name+"\x00"), act[:]...))
	return idOf(act.Time(), sum[:])
}

// idOf makes a UUID of version 7 of an instant and of bytes.
func idOf(at time.Time, bytes []byte) (id sluice.ID) {
	copy(id[:], bytes[8:])
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, at.UnixMilli()))<<16|0x7000|uint64(binary.BigEndian.Uint16(bytes)&0xfff))
	id[8] = id[8]&0x3f | 0x80
	return id
}

package sqlite

// SliceWaves makes counts of waves read so many jobs at a time.
func (s *Store) SliceWaves(jobs int) { s.waveSlice = jobs }

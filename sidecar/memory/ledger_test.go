package memory

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

func id(n int) serving.ModelID { return serving.ModelID{Model: fmt.Sprint("m", n), Version: "1"} }

func TestWhatCountsAgainstTheBudget(t *testing.T) {
	l := New(1600) // of which 100 are spare
	l.Start(300)
	l.Hold(id(1), 200)
	if l.Used() != 500 || !l.Fits(1000) || l.Fits(1001) {
		t.Errorf("used %d, and 1000 fit: %v", l.Used(), l.Fits(1000))
	}
	l.Report(650) // it takes more than it accounts for
	if l.Used() != 650 {
		t.Errorf("used %d of a process that takes 650", l.Used())
	}
	l.Release(id(1))
	l.Report(640) // and keeps what it freed
	if l.Used() != 640 || l.Models() != 0 {
		t.Errorf("used %d, %d by models", l.Used(), l.Models())
	}
	l.Start(290)
	if l.Used() != 290 {
		t.Errorf("used %d after the process was started again", l.Used())
	}
}

// A process that was connected before may still hold something when it says how it is.
func TestWhatAProcessHeldBefore(t *testing.T) {
	l := New(1600)
	l.Start(1400)
	if l.Could(200) {
		t.Error("200 would fit beside 1400")
	}
	l.Report(300) // it has dropped that
	if l.Used() != 300 || !l.Could(1200) || l.Could(1201) {
		t.Errorf("used %d, and 1200 would fit: %v", l.Used(), l.Could(1200))
	}
	l.Hold(id(1), 100)
	l.Report(290)
	if l.Used() != 400 {
		t.Errorf("used %d of 300 and 100", l.Used())
	}
}

func TestWhatIsExpected(t *testing.T) {
	l := New(1000)
	if got := l.Expect(id(1), 10); got != 10 {
		t.Errorf("%d of the first version, want what its files have", got)
	}
	l.Hold(id(1), 50)
	l.Hold(id(2), 70)
	if got := l.Expect(id(3), 10); got != 60 {
		t.Errorf("%d, want what others take", got)
	}
	if got := l.Expect(id(3), 100); got != 100 {
		t.Errorf("%d, want what its files have", got)
	}
	l.Release(id(2))
	if got := l.Expect(id(2), 1); got != 70 {
		t.Errorf("%d, want what it took before", got)
	}
}

// However versions come and go, the sum is that of those that are held.
func TestTheSumIsOfThoseHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, held := New(1000), map[int]int64{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			n := rapid.IntRange(0, 5).Draw(t, "version")
			if rapid.Bool().Draw(t, "hold") {
				held[n] = rapid.Int64Range(0, 1000).Draw(t, "bytes")
				l.Hold(id(n), held[n])
			} else {
				delete(held, n)
				l.Release(id(n))
			}
		}
		var sum int64
		for _, bytes := range held {
			sum += bytes
		}
		if l.Models() != sum || l.Len() != len(held) {
			t.Fatalf("%d bytes of %d versions, want %d of %d", l.Models(), l.Len(), sum, len(held))
		}
	})
}

//go:build unix

package process

import (
	"strings"
	"testing"
)

func TestLastError(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"nothing":                {"", ""},
		"logs only":              {"INFO topsail: connected to the sidecar at 127.0.0.1:33039\nINFO topsail: iris:2 is ready after 1.7 s\n2026-11-28 05:26:03,001 - root - WARNING - old", ""},
		"a start that went well": {"bundle d80e1b62539d: unpacking 1 files\nenvironment 5cf6507338396f67: ready (12s)\nINFO topsail: connected", ""},
		"a traceback": {`INFO topsail: loading
Traceback (most recent call last):
  File "/m.py", line 3, in <module>
    import sklearn
ModuleNotFoundError: No module named 'sklearn'
INFO topsail: bye`, "ModuleNotFoundError: No module named 'sklearn'"},
		"a traceback during another": {`Traceback (most recent call last):
  File "/m.py", line 3, in <module>
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/m.py", line 5, in <module>
    raise KeyError("second")
KeyError: 'second'`, "KeyError: 'second'"},
		"topsail itself": {"some text\ntopsail: the bundle needs Python 3.12: install it\n", "the bundle needs Python 3.12: install it"},
		"several lines": {`INFO topsail: starting
pyenv: python3.12: command not found

The ` + "`python3.12'" + ` command exists in these Python versions:
  3.12.1

Note: See 'pyenv help global' for tips on allowing both
      python2 and python3 to be found at the same time..`, "pyenv: python3.12: command not found"},
		"a log of an error": {"INFO a: b\nERROR topsail.container: cannot connect to the sidecar\n", "cannot connect to the sidecar"},
		"Java": {`Nov 28, 2026 5:26:03 AM org.example.Main main
INFO: loading
Exception in thread "main" java.lang.IllegalStateException: no model
	at org.example.Main.main(Main.java:3)`, `Exception in thread "main" java.lang.IllegalStateException: no model`},
		"Go":   {"{\"time\":\"2026\",\"level\":\"INFO\",\"msg\":\"up\"}\npanic: no model\n\ngoroutine 1 [running]:\nmain.main()", "panic: no model"},
		"long": {strings.Repeat("ä", 400), strings.Repeat("ä", 150)},
	} {
		if got := LastError(strings.Split(c.said, "\n")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What a run before has said counts no more, nor does what a log says.
func TestSaying(t *testing.T) {
	c := &Child{out: &output{}}
	for _, line := range []string{"it burns", "INFO a: b"} {
		c.out.tail.add(line)
	}
	if got := c.because("exit status 3"); got != "exit status 3: it burns" || c.Saying() != "it burns" {
		t.Errorf("%q, saying %q", got, c.Saying())
	}
	if got := c.because("killed by signal SIGKILL"); got != "killed by signal SIGKILL" {
		t.Errorf("%q", got)
	}
	c.out.tail.begin()
	c.out.tail.add("INFO a: c")
	if got := c.because("exit status 3"); got != "exit status 3" || c.Saying() != "" {
		t.Errorf("after another start: %q, saying %q", got, c.Saying())
	}
	if got := c.because("exit status 0"); !strings.Contains(got, "on its own") {
		t.Errorf("%q", got)
	}
}

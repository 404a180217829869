// A worker that all tabs share: a browser opens six connections to one host, and ten tabs with a
// stream each would leave none for data.
const ports = new Set();
let source = null;

function open() {
  source = new EventSource('/api/stream');
  const tell = (message) => { for (const port of ports) port.postMessage(message); };
  source.addEventListener('hello', (event) => tell({hello: JSON.parse(event.data)}));
  source.addEventListener('change', (event) => tell({change: JSON.parse(event.data)}));
  source.onopen = () => tell({online: true});
  source.onerror = () => {
    tell({online: false});
    if (source.readyState === EventSource.CLOSED) {  // refused: another server has taken the port
      source = null;
      setTimeout(() => { if (!source) open(); }, 5000);
    }
  };
}

onconnect = ({ports: [port]}) => {
  ports.add(port);
  port.onmessage = ({data}) => { if (data === 'bye') ports.delete(port); };
  if (!source) open();
};

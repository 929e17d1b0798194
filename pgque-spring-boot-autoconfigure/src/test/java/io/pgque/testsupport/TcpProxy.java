package io.pgque.testsupport;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * An address that leads to a server, and through which everything can be lost: nothing is
 * closed then, nothing is refused, and nothing arrives.
 */
public final class TcpProxy implements AutoCloseable {

	private final ServerSocket server;

	private final List<Link> links = new CopyOnWriteArrayList<>();

	private volatile int target;

	private volatile boolean swallowing;

	private TcpProxy(ServerSocket server, int target) {
		this.server = server;
		this.target = target;
	}

	/**
	 * Open a proxy on a free port.
	 * @param target the port on localhost that it leads to
	 */
	public static TcpProxy to(int target) {
		try {
			TcpProxy proxy = new TcpProxy(new ServerSocket(0, 50, InetAddress.getLoopbackAddress()), target);
			start("proxy", proxy::accept);
			return proxy;
		}
		catch (IOException ex) {
			throw new UncheckedIOException("No port for a proxy", ex);
		}
	}

	private static void start(String name, Runnable task) {
		Thread thread = new Thread(task, name);
		thread.setDaemon(true);
		thread.start();
	}

	/**
	 * Return the port on localhost to connect to.
	 */
	public int port() {
		return this.server.getLocalPort();
	}

	/**
	 * Lose everything from now on: what is connected stays so and hears nothing any more,
	 * for ever; who connects gets no answer.
	 */
	public void swallow() {
		this.swallowing = true;
		this.links.forEach((link) -> link.dead = true);
	}

	/**
	 * Lead new connections to the server again.
	 */
	public void restore() {
		this.swallowing = false;
	}

	/**
	 * Lead new connections to another server from now on. Those that exist stay where
	 * they are.
	 */
	public void redirect(int target) {
		this.target = target;
	}

	private void accept() {
		while (!this.server.isClosed()) {
			try {
				Socket client = this.server.accept();
				Link link = new Link(client);
				this.links.add(link);
				// Never back to false: swallow() may have found the link already.
				if (this.swallowing) {
					link.dead = true;
				}
				if (link.dead) {
					start("proxy-hole", () -> link.pump(client, null));
				}
				else {
					link.connect(this.target);
				}
			}
			catch (IOException ex) {
				// Closed, or the server is not there: the client hears of that.
				continue;
			}
		}
	}

	@Override
	public void close() throws IOException {
		this.server.close();
		for (Link link : this.links) {
			link.close();
		}
	}

	/**
	 * A connection of a client and the one that it is led on to.
	 */
	private static final class Link {

		private final Socket client;

		private Socket server;

		private volatile boolean dead;

		private Link(Socket client) {
			this.client = client;
		}

		void connect(int target) throws IOException {
			try {
				this.server = new Socket(InetAddress.getLoopbackAddress(), target);
			}
			catch (IOException ex) {
				this.client.close();
				throw ex;
			}
			this.client.setTcpNoDelay(true);
			this.server.setTcpNoDelay(true);
			start("proxy-up", () -> pump(this.client, this.server));
			start("proxy-down", () -> pump(this.server, this.client));
		}

		/**
		 * Pass on what arrives, until one side closes.
		 */
		private void pump(Socket from, Socket to) {
			byte[] buffer = new byte[8192];
			try {
				InputStream in = from.getInputStream();
				OutputStream out = (to != null) ? to.getOutputStream() : OutputStream.nullOutputStream();
				int count = in.read(buffer);
				while (count >= 0) {
					if (!this.dead) {
						out.write(buffer, 0, count);
					}
					count = in.read(buffer);
				}
			}
			catch (IOException ex) {
				// As good as an end.
			}
			if (!this.dead) {
				close();
			}
		}

		void close() {
			try {
				this.client.close();
				if (this.server != null) {
					this.server.close();
				}
			}
			catch (IOException ex) {
				throw new UncheckedIOException("A connection of the proxy can't be closed", ex);
			}
		}

	}

}

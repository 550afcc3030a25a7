class Rehearsal:
    def __init__(self, tracker, assumed, on, named, backend, missing, status, failure):
        vars(self).update(locals())

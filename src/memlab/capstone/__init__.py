"""The capstone: ten cases of a GPU, a model, a deadline and a budget of quality, and their judge.

cases       what each case asks for, and the script that it begins with
observed    what a rehearsed script ran (this part needs torch)
judge       whether that keeps the rules, rule by rule, and what to say of it
"""

from .cases import Case as Case
from .cases import cases as cases
from .judge import Rule as Rule
from .judge import judged as judged
from .judge import points as points
